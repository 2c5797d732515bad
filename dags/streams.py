"""Builds the DAGs of every declaration in the folder. Airflow needs only this file."""

from headgate.airflow import build_dags

globals().update(build_dags("pipelines/examples"))
