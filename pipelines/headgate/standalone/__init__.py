"""An Airflow of one's own, on this machine: ``headgate up``. It runs Airflow and imports none of
it."""
