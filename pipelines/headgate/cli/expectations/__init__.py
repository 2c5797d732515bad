"""``headgate expectations``: suites of rules."""
