"""Silver: a pure function of bronze rows. Conform, filter, or quarantine."""
