"""Maintenance of tables: small files merged, and what nothing needs any more removed."""
