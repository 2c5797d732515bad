"""Builds the DAGs of every declaration in the folder. Airflow needs only this file."""

from headgate.airflow import build_dags

# Owner, tags, callbacks, a pool, passwords from Airflow's connections: help(build_dags).
globals().update(build_dags("pipelines"))
