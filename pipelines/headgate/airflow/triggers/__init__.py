"""What waits in the triggerer, so that no worker is held."""
