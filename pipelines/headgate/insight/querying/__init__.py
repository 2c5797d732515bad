"""SQL over tables without a JVM: which statements are allowed, and connections of DuckDB."""
