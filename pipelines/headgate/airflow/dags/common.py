"""Shared by all DAGs of streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypedDict

from headgate.supervision.launcher import Stream

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


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
