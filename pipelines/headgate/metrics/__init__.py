"""What is measured of pipelines, read from their tables' logs and documents, and served."""
