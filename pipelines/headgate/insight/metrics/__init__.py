"""Metrics of pipelines, which are read from the logs and documents of tables, and served."""
