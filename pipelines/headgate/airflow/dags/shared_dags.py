"""The DAGs that all pipelines share, each task mapped over them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, TriggerRule

from headgate.airflow.dags import docs
from headgate.airflow.dags.attached import Attached
from headgate.airflow.dags.common import Schedule, keywords, tables
from headgate.airflow.operators.health_check import HealthCheck
from headgate.airflow.operators.ledger_check import LedgerCheck
from headgate.airflow.operators.reconciler import Reconciler
from headgate.airflow.operators.savepoint_operator import SavepointOperator
from headgate.airflow.operators.verb_operator import VerbOperator
from headgate.insight.status.limits import Limits
from headgate.machine.process_tree.members import MARK
from headgate.supervision.launcher import Stream

_NAMED = "{{ task.name }}"


def _keywords(schedule: Schedule, attached: Attached, retry_delay: timedelta) -> dict[str, Any]:
    return {
        "schedule": schedule,
        "max_active_runs": 1,
        # On in the Airflow of `headgate up`; elsewhere, Airflow's setting applies.
        "is_paused_upon_creation": False if MARK in os.environ else None,
        **attached.keywords("headgate", retries=2, retry_delay=retry_delay),
    }


def health(
    streams: Sequence[Stream],
    launcher: str,
    limits: Limits,
    schedule: Schedule,
    attached: Attached,
) -> DAG:
    about = [dict(keywords(stream, launcher)) for stream in streams]
    with DAG(
        "headgate__health",
        # For tasks that Airflow cannot run, for example while its API server starts. A failed check
        # is not retried.
        **_keywords(schedule, attached, timedelta(seconds=30)),
        doc_md=docs.HEALTH.format(when=docs.when(schedule)),
    ) as dag:
        HealthCheck.partial(
            task_id="checks", limits=limits, map_index_template=_NAMED
        ).expand_kwargs(about)
    return dag


def maintenance(
    streams: Sequence[Stream], launcher: str, schedule: Schedule, attached: Attached
) -> DAG:
    about = [dict(keywords(stream, launcher)) for stream in streams]
    of_tables = [dict(tables(stream)) for stream in streams]
    mapped = {"map_index_template": _NAMED, **attached.slots}
    with DAG(
        "headgate__maintenance",
        # A task may fail because a driver starts or ends at the same time: then it is tried again.
        **_keywords(schedule, attached, timedelta(minutes=1)),
        doc_md=docs.MAINTENANCE.format(when=docs.when(schedule)),
    ) as dag:
        Reconciler.partial(task_id="reconcile", map_index_template=_NAMED).expand_kwargs(about)
        SavepointOperator.partial(
            task_id="savepoint", note="headgate__maintenance", keep=24, **mapped
        ).expand_kwargs(of_tables)
        compact = VerbOperator.partial(task_id="compact", verb=["compact"], **mapped).expand_kwargs(
            of_tables
        )
        # A driver compacts or vacuums, not both at a time. A failure of one pipeline does not stop
        # the vacuum of others.
        vacuum = VerbOperator.partial(
            task_id="vacuum",
            verb=["vacuum"],
            trigger_rule=TriggerRule.ALL_DONE,
            **mapped,
        ).expand_kwargs(of_tables)
        LedgerCheck.partial(task_id="ledger", by_id=True, **mapped).expand_kwargs(of_tables)
        compact >> vacuum
    return dag
