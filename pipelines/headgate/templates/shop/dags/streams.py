"""Every declaration of the folder as DAGs: this is the one file that an Airflow needs."""

from headgate.airflow import build_dags

globals().update(build_dags("pipelines"))
