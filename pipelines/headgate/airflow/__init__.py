"""Supervision of streams by Airflow: DAGs from declarations, operators, triggers.

::

    from headgate.airflow import build_dags

    globals().update(build_dags("pipelines"))

is all that a DAGs folder needs. Names are imported on first use, because Airflow reads a DAG file
every few seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.airflow.dags.building import build_dags, require_declarations
    from headgate.airflow.gold_table import GoldTable, gold_asset, gold_days, gold_tables
    from headgate.airflow.operators.control_operator import ControlOperator
    from headgate.airflow.operators.health_check import HealthCheck
    from headgate.airflow.operators.ledger_check import LedgerCheck
    from headgate.airflow.operators.reconciler import Reconciler
    from headgate.airflow.operators.savepoint_operator import SavepointOperator
    from headgate.airflow.operators.stream_operator import StreamOperator
    from headgate.airflow.sensors.gold_final_sensor import GoldFinalSensor

__all__ = [
    "ControlOperator",
    "GoldFinalSensor",
    "GoldTable",
    "HealthCheck",
    "LedgerCheck",
    "Reconciler",
    "SavepointOperator",
    "StreamOperator",
    "build_dags",
    "gold_asset",
    "gold_days",
    "gold_tables",
    "require_declarations",
]

_WHERE = {
    "ControlOperator": "operators.control_operator",
    "GoldFinalSensor": "sensors.gold_final_sensor",
    "GoldTable": "gold_table",
    "HealthCheck": "operators.health_check",
    "LedgerCheck": "operators.ledger_check",
    "Reconciler": "operators.reconciler",
    "SavepointOperator": "operators.savepoint_operator",
    "StreamOperator": "operators.stream_operator",
    "build_dags": "dags.building",
    "gold_asset": "gold_table",
    "gold_days": "gold_table",
    "gold_tables": "gold_table",
    "require_declarations": "dags.building",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
