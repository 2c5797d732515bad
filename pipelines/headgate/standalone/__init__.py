"""``headgate up``: runs a local Airflow as processes and imports none of it."""
