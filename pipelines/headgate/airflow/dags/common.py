"""Shared by all DAGs of streams."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypedDict

from headgate.supervision.launcher import Stream

Schedule: TypeAlias = timedelta | str | None
"""A text is a cron expression, or a preset such as ``@hourly``."""
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
CONTINUOUS: dict[str, Any] = {
    "schedule": "@continuous",
    "max_active_runs": 1,
    # The next run begins at once, so one that cannot start would fail without end.
    "max_consecutive_failed_dag_runs": 3,
}
RETRIES: dict[str, Any] = {"retries": 10, "retry_delay": timedelta(seconds=10)}
"""For workers that die, and for an answer of a person that arrives before the scheduler knows that
the task waits: Airflow fails that attempt, and the next one asks again."""


class Tables(TypedDict):
    """The arguments of operators on a pipeline's tables: plain text, because tasks may be
    mapped."""

    file: str
    name: str
    root: str


class Keywords(Tables):
    """The arguments of stream operators."""

    launcher: str


def tables(stream: Stream) -> Tables:
    return Tables(file=str(stream.file), name=stream.name, root=stream.root)


def keywords(stream: Stream, launcher: str) -> Keywords:
    return {**tables(stream), "launcher": launcher}
