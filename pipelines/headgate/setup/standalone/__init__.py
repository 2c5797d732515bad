"""``headgate up``: runs a local Airflow as processes, and does not import it."""
