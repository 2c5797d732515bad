"""Mistakes in declarations, as one import error that disturbs no DAG. It builds no DAG itself."""

from headgate.airflow import require_declarations

require_declarations("pipelines")
