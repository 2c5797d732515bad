"""Reports mistakes in declarations as one import error, which affects no DAG. Builds no DAG."""

from headgate.airflow import require_declarations

require_declarations("pipelines")
