"""Maintenance of tables: merge small files, and remove files and log entries that nothing needs."""
