"""Silver: a pure function of bronze rows. Transform, filter, or quarantine."""
