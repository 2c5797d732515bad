"""What a source is told of a load of history, and what it says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

BATCH_TARGET = timedelta(seconds=2)
"""How long a batch of a load should take: the stream waits for it."""


@dataclass(frozen=True)
class LoadWanted:
    """The history that a person names: ``files`` is a pattern of paths, ``topics`` are topics or
    ranges of their partitions. Only files and records that were written in [begin, end) are meant.
    """

    files: str | None = None
    topics: Sequence[str] = ()
    begin: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class LoadPlan:
    """``begins`` and ``ends`` are the source's offsets between which it reads. ``what`` names the
    history to a person, ``unit`` is what offsets count. ``details`` are the source's own, as plain
    values."""

    begins: Mapping[str, int]
    ends: Mapping[str, int]
    what: str
    unit: str
    details: Mapping[str, Any] = field(default_factory=dict)
