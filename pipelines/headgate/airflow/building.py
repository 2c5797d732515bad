"""DAGs from declarations: a new file in the folder is a new DAG.

Read every few seconds by Airflow, so nothing here imports Spark, looks at tables, or asks anybody
anything.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param

from headgate.airflow import docs
from headgate.airflow.common import SINCE, keywords
from headgate.airflow.control_operator import ACTIONS, ControlOperator
from headgate.airflow.preflight import Preflight
from headgate.airflow.shared_dags import health, maintenance
from headgate.airflow.stream_operator import StreamOperator
from headgate.spec.errors import DeclarationError
from headgate.spec.load import load
from headgate.supervision.launcher import LOCAL, Stream

_LASTS = timedelta(hours=24)
_SUFFIXES = (".yml", ".yaml")


def build_dags(
    folder: str | Path, *, root: str | Path | None = None, launcher: str = LOCAL
) -> dict[str, DAG]:
    """The DAGs of every declaration in a folder, by their ids.

    A relative ``folder`` is looked for beside the calling file, then above it. ``root`` has the
    tables: ``$HEADGATE_ROOT``, else ``lake`` beside the folder. A declaration with mistakes has no
    DAGs: ``require_declarations`` tells of it.
    """
    place = _place(folder)
    tables = str(root or os.environ.get("HEADGATE_ROOT") or place.parent / "lake")
    streams = []
    for file in _files(place):
        with suppress(DeclarationError):
            streams.append(Stream(file, load(file).name, tables))
    dags = [make(stream, launcher) for stream in streams for make in (_stream, _control)]
    if streams:
        dags += [health(streams, launcher), maintenance(streams, launcher)]
    return {dag.dag_id: dag for dag in dags}


def require_declarations(folder: str | Path) -> None:
    """Raises DeclarationError's text for all the mistakes in a folder's declarations.

    In a DAG file of its own this makes them one import error that disturbs no DAG.
    """
    told = []
    for file in _files(_place(folder)):
        try:
            load(file)
        except DeclarationError as error:
            told.append(str(error))
    if told:
        raise ValueError("\n".join(told))


def _stream(stream: Stream, launcher: str) -> DAG:
    about = keywords(stream, launcher)
    with DAG(
        f"{stream.name}__stream",
        schedule="@continuous",
        start_date=SINCE,
        catchup=False,
        max_active_runs=1,
        # The next run begins at once: without this a stream that cannot start would fill the list.
        max_consecutive_failed_dag_runs=3,
        # Of workers that die; what the driver does is the operator's to bear with.
        default_args={"retries": 10, "retry_delay": timedelta(seconds=10)},
        tags=["headgate", stream.name],
        doc_md=docs.STREAM.format(**about, hours=_LASTS / timedelta(hours=1)),
    ) as dag:
        supervise = StreamOperator(task_id="supervise", rotate_after=_LASTS, **about)
        Preflight(task_id="preflight", **about) >> supervise
    return dag


def _control(stream: Stream, launcher: str) -> DAG:
    about = keywords(stream, launcher)
    with DAG(
        f"{stream.name}__control",
        schedule=None,
        start_date=SINCE,
        catchup=False,
        max_active_runs=1,
        params={
            "action": Param(ACTIONS[0], enum=list(ACTIONS), title="What to do"),
            "savepoint": Param(
                "latest", type="string", title="Savepoint", description="to start from"
            ),
        },
        tags=["headgate", stream.name],
        doc_md=docs.CONTROL.format(**about),
    ) as dag:
        ControlOperator(
            task_id="act",
            action="{{ params.action }}",
            savepoint="{{ params.savepoint }}",
            **about,
        )
    return dag


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(f for s in _SUFFIXES for f in folder.glob(f"*{s}") if f.is_file()))


def _place(folder: str | Path) -> Path:
    """Where the caller means: Airflow's working folder says nothing."""
    path = Path(folder).expanduser()
    if path.is_absolute():
        return path
    caller = Path(sys._getframe(2).f_globals.get("__file__", Path.cwd() / "x")).resolve()
    for base in caller.parents:
        if (base / path).is_dir():
            return base / path
    return Path.cwd() / path
