"""DAGs from declarations: a new file in the folder is a new DAG."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule

from headgate.airflow.connections import require_connections
from headgate.airflow.dags import docs
from headgate.airflow.dags.approvals import IF_APPROVED, approval
from headgate.airflow.dags.attached import Access, Attached, Callbacks
from headgate.airflow.dags.backfill_dag import backfill
from headgate.airflow.dags.common import CONTINUOUS, RETRIES, Schedule, keywords, tables
from headgate.airflow.dags.shared_dags import health, maintenance
from headgate.airflow.operators.control_operator import ACTIONS, LABELS, ControlOperator
from headgate.airflow.operators.decision_operator import DecisionOperator
from headgate.airflow.operators.final_periods import AwaitFinalPeriods, EmitFinalPeriods
from headgate.airflow.operators.preflight import Preflight
from headgate.airflow.operators.stop_report import StopReport
from headgate.airflow.operators.stream_operator import StreamOperator
from headgate.airflow.projects import Declared, declared_in, declared_twice, place
from headgate.airflow.run_conf import require_known
from headgate.commands import pipeline_command, rendered
from headgate.declaration.errors import DeclarationError
from headgate.declaration.files import declarations_in
from headgate.insight.final_periods.periods import PERIODS
from headgate.insight.status.limits import Limits
from headgate.supervision.launcher import LOCAL, Stream

_LASTS = timedelta(hours=24)


def build_dags(
    folder: str | Path,
    *,
    root: str | Path | None = None,
    launcher: str = LOCAL,
    limits: Limits | None = None,
    connections: Mapping[str, str] | None = None,
    default_args: Mapping[str, Any] | None = None,
    owner: str | None = None,
    pool: str | None = None,
    queue: str | None = None,
    tags: Collection[str] = (),
    on_failure_callback: Callbacks | None = None,
    on_success_callback: Callbacks | None = None,
    access_control: Access | None = None,
    health_schedule: Schedule = timedelta(minutes=5),
    maintenance_schedule: Schedule = timedelta(hours=1),
) -> dict[str, DAG]:
    """The DAGs of every declaration in a folder, by their ids.

    A relative ``folder`` is searched beside the calling file, then above it. ``root`` has the
    tables; by default ``$HEADGATE_ROOT``, else ``lake``; a relative one starts in the folder that
    has ``pipelines``. ``limits`` are those of ``headgate__health``. Only names are read from a
    declaration, so a mistake in it ends no DAG of the stream: ``require_declarations`` reports it,
    and the stream refuses to start. If other files declare the same pipeline, its DAGs still use
    NAME.yml.

    ``connections`` are environment variables of the drivers and backfills, each with the field of
    an Airflow connection that has its value: ``{"DB_PASSWORD": "shop_db.password"}``. Fields are
    ``host``, ``port``, ``login``, ``schema``, ``password``, ``uri`` and ``extra.KEY``. A value is
    read when a process starts.

    The other arguments are those of every DAG, or with ``default_args`` of every task. Headgate's
    own retries, dates, trigger rules, dependencies on earlier runs, execution timeouts and limits
    of active tasks win, because the supervision of a stream depends on them. ``owner``, ``pool``
    and ``queue`` may be in ``default_args`` as well. Only backfills and ``headgate__maintenance``
    use the ``pool``: a task that supervises, waits, checks or asks a person never waits behind
    them, and holds no slot of the pool, even of one that includes deferred tasks.
    ``on_failure_callback`` and ``on_success_callback`` are called once for each run; those of
    tasks are in ``default_args``. A schedule of None means: only if it is triggered.

    Raises ValueError or TypeError if an argument is wrong.
    """
    named = {"owner": owner, "pool": pool, "queue": queue}
    callbacks = {
        "on_failure_callback": on_failure_callback,
        "on_success_callback": on_success_callback,
    }
    attached = Attached.of(default_args, tags, named, callbacks, access_control)
    secrets = {} if connections is None else connections
    require_connections(secrets)
    found = declared_in(place(folder), root)
    streams = [each.stream for each in found]
    dags = [
        make(stream, launcher, secrets, attached)
        for stream in streams
        for make in (_stream, _control)
    ]
    dags += [_gold(each, attached) for each in found if each.gold]
    dags += [
        backfill(each, each.backfill, secrets, attached)
        for each in found
        if each.folds and each.backfill
    ]
    if streams:
        dags += [
            health(streams, launcher, limits or Limits(), health_schedule, attached),
            maintenance(streams, launcher, maintenance_schedule, attached),
        ]
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


def _stream(
    stream: Stream, launcher: str, connections: Mapping[str, str], attached: Attached
) -> DAG:
    about = keywords(stream, launcher)
    with DAG(
        f"{stream.name}__stream",
        **CONTINUOUS,
        **attached.keywords("headgate", stream.name, **RETRIES),
        doc_md=docs.STREAM.format(
            **about,
            hours=_LASTS / timedelta(hours=1),
            status=rendered(pipeline_command("status"), stream.place),
        ),
    ) as dag:
        supervise = StreamOperator(
            task_id="supervise", rotate_after=_LASTS, connections=connections, **about
        )
        report = StopReport(
            task_id="report", of="supervise", trigger_rule=TriggerRule.ALL_DONE, **about
        )
        preflight = Preflight(task_id="preflight", connections=connections, **about)
        preflight >> supervise >> report
    return dag


def _control(
    stream: Stream, launcher: str, connections: Mapping[str, str], attached: Attached
) -> DAG:
    about = keywords(stream, launcher)
    with DAG(
        f"{stream.name}__control",
        schedule=None,
        # The trigger form has no effect while the DAG is paused. The DAG has no schedule, so it can
        # be on from the start.
        is_paused_upon_creation=False,
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
                section="Only for: replay late rows, release, reject",
            ),
        },
        **attached.keywords("headgate", stream.name),
        doc_md=docs.CONTROL.format(**about),
    ) as dag:
        act = ControlOperator(
            task_id="act",
            action="{{ params.action or '' }}",
            savepoint="{{ params.savepoint or '' }}",
            table="{{ params.table or '' }}",
            max_active_tis_per_dag=1,
            connections=connections,
            pre_execute=require_known,
            **about,
        )
        approve = approval("approve", act, needs_reason=True)
        approve >> DecisionOperator(
            task_id="carry_out",
            asks="act",
            approval="approve",
            trigger_rule=IF_APPROVED,
            **tables(stream),
        )
    return dag


def _gold(declared: Declared, attached: Attached) -> DAG:
    stream, gold = declared.stream, declared.gold
    about = tables(stream)
    with DAG(
        f"{stream.name}__gold",
        **CONTINUOUS,
        **attached.keywords("headgate", stream.name, **RETRIES),
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


def _task_id(wanted: str, gold: Collection[str]) -> str:
    """The id of a task beside those that are named like gold tables. No table has a dash in its
    name."""
    return f"{wanted}-" if wanted in gold else wanted
