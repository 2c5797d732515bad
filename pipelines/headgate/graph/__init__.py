"""Which tables a pipeline has, and which feeds which."""
