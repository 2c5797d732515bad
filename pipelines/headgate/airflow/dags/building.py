"""DAGs from declarations: a new file in the folder is a new DAG."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule
from airflow.timetables.interval import DeltaDataIntervalTimetable

from headgate.airflow.dags import docs
from headgate.airflow.dags.common import SINCE, keywords, tables
from headgate.airflow.dags.shared_dags import health, maintenance
from headgate.airflow.interval import TO
from headgate.airflow.operators.backfill import (
    BackfillInterval,
    PublishApproval,
    ReplayInterval,
    Then,
)
from headgate.airflow.operators.control_operator import ACTIONS, LABELS, ControlOperator
from headgate.airflow.operators.final_periods import AwaitFinalPeriods, EmitFinalPeriods
from headgate.airflow.operators.preflight import Preflight
from headgate.airflow.operators.release_approval import ReleaseApproval, ReleaseOperator
from headgate.airflow.operators.stop_report import StopReport
from headgate.airflow.operators.stream_operator import StreamOperator
from headgate.airflow.projects import Declared, declared_in, declared_twice, place
from headgate.airflow.sensors.gold_final_sensor import GoldFinalSensor
from headgate.commands import pipeline_command, rendered
from headgate.declaration.errors import DeclarationError
from headgate.declaration.files import declarations_in
from headgate.declaration.settings import BackfillSchedule
from headgate.supervision.launcher import LOCAL, Stream
from headgate.supervision.limits import Limits
from headgate.supervision.periods import PERIODS

_LASTS = timedelta(hours=24)
_RETRIES: dict[str, Any] = {"retries": 10, "retry_delay": timedelta(seconds=10)}
"""For workers that die, and for an answer of a person that arrives before the scheduler knows that
the task waits: Airflow fails that attempt, and the next one asks again."""
_BACKFILLS_AT_A_TIME = 2
"""Each backfill starts a Spark of its own."""


def build_dags(
    folder: str | Path,
    *,
    root: str | Path | None = None,
    launcher: str = LOCAL,
    limits: Limits | None = None,
) -> dict[str, DAG]:
    """The DAGs of every declaration in a folder, by their ids.

    A relative ``folder`` is searched beside the calling file, then above it. ``root`` has the
    tables; by default ``$HEADGATE_ROOT``, else ``lake``; a relative one starts in the folder that
    has ``pipelines``. ``limits`` are those of ``headgate__health``. Only names are read from a
    declaration, so a mistake in it ends no DAG of the stream: ``require_declarations`` reports it,
    and the stream refuses to start. If other files declare the same pipeline, its DAGs still use
    NAME.yml.
    """
    found = declared_in(place(folder), root)
    streams = [each.stream for each in found]
    dags = [make(stream, launcher) for stream in streams for make in (_stream, _control)]
    dags += [_gold(each) for each in found if each.gold]
    dags += [_backfill(each, each.backfill) for each in found if each.gold and each.backfill]
    if streams:
        dags += [health(streams, launcher, limits or Limits()), maintenance(streams, launcher)]
    return {dag.dag_id: dag for dag in dags}


def require_declarations(folder: str | Path) -> None:
    """Raises ValueError if declarations in a folder have mistakes, or several declare the same
    pipeline. The error lists all problems, with the texts of DeclarationError.

    Call it in a separate DAG file: then the mistakes are one import error that affects no DAG.
    """
    from headgate.declaration.load import load

    declarations = place(folder)
    problems = list(declared_twice(declarations))
    for file in declarations_in(declarations):
        try:
            load(file, needs_secrets=False)
        except DeclarationError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))


def _stream(stream: Stream, launcher: str) -> DAG:
    about = keywords(stream, launcher)
    with DAG(
        f"{stream.name}__stream",
        schedule="@continuous",
        start_date=SINCE,
        catchup=False,
        max_active_runs=1,
        # The next run begins at once, so a stream that cannot start would fail without end.
        max_consecutive_failed_dag_runs=3,
        default_args=_RETRIES,
        tags=["headgate", stream.name],
        doc_md=docs.STREAM.format(
            **about,
            hours=_LASTS / timedelta(hours=1),
            status=rendered(pipeline_command("status"), stream.place),
        ),
    ) as dag:
        supervise = StreamOperator(task_id="supervise", rotate_after=_LASTS, **about)
        report = StopReport(
            task_id="report", of="supervise", trigger_rule=TriggerRule.ALL_DONE, **about
        )
        Preflight(task_id="preflight", **about) >> supervise >> report
    return dag


def _control(stream: Stream, launcher: str) -> DAG:
    about = keywords(stream, launcher)
    with DAG(
        f"{stream.name}__control",
        schedule=None,
        start_date=SINCE,
        # The trigger form has no effect while the DAG is paused. The DAG has no schedule, so it can
        # be on from the start.
        is_paused_upon_creation=False,
        catchup=False,
        # A run that waits for an approval does not block others. Actions run one at a time.
        max_active_runs=16,
        params={
            # None is not valid: Airflow refuses a run for which nobody chose an action.
            "action": Param(
                None,
                type="string",
                enum=list(ACTIONS),
                values_display=dict(LABELS),
                title="What to do",
            ),
            # In a separate section, which the form shows collapsed.
            "savepoint": Param(
                None,
                type=["null", "string"],
                title="Savepoint",
                description="its id, or latest",
                section="Only for: start from savepoint",
            ),
            "table": Param(
                None,
                type=["null", "string"],
                title="Gold table",
                description="such as gold.sales; all, if it is empty",
                section="Only for: replay late rows",
            ),
        },
        tags=["headgate", stream.name],
        doc_md=docs.CONTROL.format(**about),
    ) as dag:
        act = ControlOperator(
            task_id="act",
            action="{{ params.action or '' }}",
            savepoint="{{ params.savepoint or '' }}",
            table="{{ params.table or '' }}",
            max_active_tis_per_dag=1,
            **about,
        )
        approve = ReleaseApproval(task_id="approve", name=stream.name, asks="act", **_RETRIES)
        release = ReleaseOperator(
            task_id="release", asks="act", approval="approve", **tables(stream)
        )
        act >> approve >> release
    return dag


def _gold(declared: Declared) -> DAG:
    stream, gold = declared.stream, declared.gold
    about = tables(stream)
    with DAG(
        f"{stream.name}__gold",
        schedule="@continuous",
        start_date=SINCE,
        catchup=False,
        max_active_runs=1,
        max_consecutive_failed_dag_runs=3,
        default_args=_RETRIES,
        tags=["headgate", stream.name],
        doc_md=docs.GOLD.format(name=stream.name, tables=", ".join(f"`{name}`" for name in gold)),
    ) as dag:
        waiting = AwaitFinalPeriods(task_id=_task_id("wait", gold), tables=gold, **about)
        for table in gold:
            for period in PERIODS:
                waiting >> EmitFinalPeriods(
                    task_id=table if period == "hour" else f"{table}-{period}s",
                    table=table,
                    period=period,
                    waiting=waiting.task_id,
                    **about,
                )
    return dag


def _backfill(declared: Declared, schedule: BackfillSchedule) -> DAG:
    """Waits until an interval is final, computes it again, and publishes differences if allowed."""
    stream, gold = declared.stream, declared.gold
    about = tables(stream)
    with DAG(
        f"{stream.name}__backfill",
        schedule=DeltaDataIntervalTimetable(schedule.every),
        start_date=SINCE,
        catchup=False,
        max_active_runs=16,
        max_active_tasks=_BACKFILLS_AT_A_TIME,
        default_args=_RETRIES,
        params={
            "declaration": Param(
                None,
                type=["null", "string"],
                title="Other declaration",
                description="a file with other formulas beside the pipeline's own, "
                "such as other.txt; empty: its own",
            )
        },
        tags=["headgate", stream.name],
        doc_md=docs.BACKFILL.format(
            name=stream.name, mode=schedule.mode, publish=schedule.publish, compute="compute"
        ),
    ) as dag:
        final = [
            GoldFinalSensor(task_id=f"{table}_is_final", table=table, up_to=TO, **about)
            for table in gold
        ]
        compute = BackfillInterval(task_id="compute", then=_then(schedule), **about)
        if schedule.mode == "late":
            replay = ReplayInterval(task_id="replay", tables=gold, **about)
            final >> replay >> compute
        else:
            final >> compute
        if compute.then == "show":
            approve = PublishApproval(task_id="approve", name=stream.name, asks=compute.task_id)
            publish = BackfillInterval(
                task_id="publish", then="publish", approved=compute.task_id, **about
            )
            compute >> approve >> publish
    return dag


def _task_id(wanted: str, gold: Collection[str]) -> str:
    """The id of a task beside those that are named like gold tables. No table has a dash in its
    name."""
    return f"{wanted}-" if wanted in gold else wanted


def _then(schedule: BackfillSchedule) -> Then:
    """What the task ``compute`` does with rows that differ."""
    if schedule.mode != "rebuild" or schedule.publish == "when_equal":
        return "verify"
    return "show" if schedule.publish == "after_approval" else "publish"
