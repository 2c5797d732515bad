"""Reads the versions of tables that readers may see, each once."""
