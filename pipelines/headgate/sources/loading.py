"""The request for a load of history, and the source's plan of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

BATCH_TARGET = timedelta(seconds=2)
"""The target duration of a load's batch. The stream waits during the batch."""


@dataclass(frozen=True)
class LoadWanted:
    """The history that a person names: ``files`` is a pattern of paths, ``topics`` are topics or
    ranges of their partitions. Only files and records that were written in [begin, end) are loaded.
    Ranges of offsets are loaded as they are named."""

    files: str | None = None
    topics: Sequence[str] = ()
    begin: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class LoadPlan:
    """The load reads from the source's offsets ``begins`` to ``ends``. ``what`` describes the
    history in messages, ``unit`` is what offsets count. ``details`` are plain values that only the
    source uses."""

    begins: Mapping[str, int]
    ends: Mapping[str, int]
    what: str
    unit: str
    details: Mapping[str, Any] = field(default_factory=dict)
