"""Questions about tables, and their answers as plain values. Each is a function of versions."""
