"""``headgate demo``: verb, screen and results."""
