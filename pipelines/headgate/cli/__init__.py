"""The command line: one module per verb, nothing heavy imported before a verb needs it."""
