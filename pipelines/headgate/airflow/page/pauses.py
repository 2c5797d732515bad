"""Who has paused a DAG, from Airflow's audit log."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from airflow.models.dag import DagModel
from airflow.models.log import Log
from sqlalchemy import func, select
from sqlalchemy.orm import Session

_BY_AIRFLOW = "paused"
_BY_API = "patch_dag"
_BY_CLI = {"cli_dag_pause": True, "cli_dag_unpause": False}
_EVENTS = (_BY_AIRFLOW, _BY_API, *_BY_CLI)


@dataclass(frozen=True)
class Pause:
    """``by`` Airflow itself, after ``failed_runs`` failed runs, or a person, ``who``; None if the
    audit log does not have it: the DAG was never on, or the log was cleaned."""

    by: Literal["airflow", "person"] | None = None
    who: str | None = None
    at: datetime | None = None
    failed_runs: int | None = None


def pause_of(
    event: str, owner: str | None, extra: str | None, at: datetime | None, failed_runs: int
) -> Pause:
    """The pause of a DAG whose last event about pauses is this one. Airflow pauses a DAG after
    ``failed_runs`` failed runs."""
    if event == _BY_AIRFLOW:
        return Pause("airflow", at=at, failed_runs=failed_runs)
    return Pause("person", owner, at) if _pauses(event, extra) else Pause()


def _pauses(event: str, extra: str | None) -> bool:
    if event in _BY_CLI:
        return _BY_CLI[event]
    with suppress(ValueError):
        given = json.loads(extra or "")
        return isinstance(given, dict) and given.get("is_paused") is True
    return False


def pauses(session: Session, dag_ids: Collection[str]) -> dict[str, Pause]:
    """The pauses of some DAGs, which are paused."""
    if not dag_ids:
        return {}
    last = (
        select(func.max(Log.id))
        .where(Log.dag_id.in_(dag_ids), Log.event.in_(_EVENTS))
        .group_by(Log.dag_id)
    )
    rows = session.execute(
        select(Log.dag_id, Log.event, Log.owner, Log.extra, Log.dttm)
        .add_columns(DagModel.max_consecutive_failed_dag_runs)
        .join(DagModel, DagModel.dag_id == Log.dag_id)
        .where(Log.id.in_(last))
    )
    return dict.fromkeys(dag_ids, Pause()) | {dag_id: pause_of(*about) for dag_id, *about in rows}
