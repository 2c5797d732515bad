"""Suites of Great Expectations rules: ``expectations/NAME.yml``."""
