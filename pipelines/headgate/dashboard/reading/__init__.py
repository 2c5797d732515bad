"""Reads released versions of tables, each once."""
