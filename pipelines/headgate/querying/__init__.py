"""SQL over tables without a JVM: what may be asked, and by which connection of DuckDB."""
