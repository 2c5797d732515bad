"""Verbs for this machine: check it, create a project, run Airflow."""
