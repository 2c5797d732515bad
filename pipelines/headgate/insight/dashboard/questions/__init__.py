"""Questions about tables, and their answers as plain values. An answer is computed from versions of
tables."""
