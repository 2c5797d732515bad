"""The DAG that computes intervals of gold again."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import DAG, Param
from airflow.timetables.interval import DeltaDataIntervalTimetable

from headgate.airflow.dags import docs
from headgate.airflow.dags.approvals import IF_APPROVED, approval
from headgate.airflow.dags.attached import Attached
from headgate.airflow.dags.common import RETRIES, tables
from headgate.airflow.operators.backfill import (
    BackfillInterval,
    ReplayInterval,
    Then,
)
from headgate.airflow.projects import Declared
from headgate.airflow.run_conf import TO, require_known
from headgate.airflow.sensors.gold_final_sensor import GoldFinalSensor
from headgate.declaration.model import BackfillSchedule

_AT_A_TIME = 2
"""Each backfill starts a Spark of its own."""


def backfill(
    declared: Declared,
    schedule: BackfillSchedule,
    connections: Mapping[str, str],
    attached: Attached,
) -> DAG:
    """Waits until an interval is final, computes it again, and publishes differences if allowed."""
    stream, gold = declared.stream, declared.folds
    about = tables(stream)
    computing = {**about, "connections": connections, **attached.slots}
    with DAG(
        f"{stream.name}__backfill",
        schedule=DeltaDataIntervalTimetable(schedule.every),
        max_active_runs=16,
        max_active_tasks=_AT_A_TIME,
        params={
            "declaration": Param(
                None,
                type=["null", "string"],
                title="Other declaration",
                description="A file with other formulas beside the pipeline's own, such as "
                "other.txt; empty: its own. Airflow ignores this field unless 'Override parameters "
                "on existing runs' is ticked, also for new runs. Choose 'All Runs' to compute "
                "intervals again that have a run already.",
            )
        },
        **attached.keywords("headgate", stream.name, **RETRIES),
        doc_md=docs.BACKFILL.format(name=stream.name, mode=schedule.mode, publish=schedule.publish),
    ) as dag:
        final = [
            GoldFinalSensor(
                task_id=f"{table}_is_final",
                table=table,
                up_to=TO,
                pre_execute=require_known,
                **about,
            )
            for table in gold
        ]
        compute = BackfillInterval(task_id="compute", then=_then(schedule), **computing)
        if schedule.mode == "late":
            replay = ReplayInterval(task_id="replay", tables=gold, **about, **attached.slots)
            final >> replay >> compute
        else:
            final >> compute
        if compute.then == "show":
            approve = approval("approve", compute)
            approve >> BackfillInterval(
                task_id="publish",
                then="publish",
                asks=compute.task_id,
                approval=approve.task_id,
                trigger_rule=IF_APPROVED,
                **computing,
            )
    return dag


def _then(schedule: BackfillSchedule) -> Then:
    """What the task ``compute`` does with rows that differ."""
    if schedule.mode != "rebuild" or schedule.publish == "when_equal":
        return "verify"
    return "show" if schedule.publish == "after_approval" else "publish"
