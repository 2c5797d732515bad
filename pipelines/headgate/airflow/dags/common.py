"""What all DAGs of streams have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypedDict

from headgate.supervision.launcher import Stream

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


class Keywords(TypedDict):
    """What operators of a stream are made with: plain text, for a mapped task's sake."""

    file: str
    name: str
    root: str
    launcher: str


class Tables(TypedDict):
    """What operators of a pipeline's tables are made with."""

    file: str
    name: str
    root: str


def tables(stream: Stream) -> Tables:
    return Tables(file=str(stream.file), name=stream.name, root=stream.root)


def keywords(stream: Stream, launcher: str) -> Keywords:
    return Keywords(file=str(stream.file), name=stream.name, root=stream.root, launcher=launcher)
