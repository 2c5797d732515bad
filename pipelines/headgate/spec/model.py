"""What a declaration says, as inert values.

A pipeline file becomes one :class:`Pipeline`. Nothing here reads, checks or runs anything: the
loader (`load.py`) has already refused whatever does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

FileFormat = Literal["json", "csv", "parquet"]
FileOrder = Literal["name", "modified"]
OnDiffering = Literal["warn", "keep", "quarantine"]
OnUnknown = Literal["ignore", "rescue", "quarantine"]
Jobs = Literal["fused", "per_layer"]
Function = Literal[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "stddev",
    "count_distinct",
    "approx_count_distinct",
    "first",
    "last",
]


@dataclass(frozen=True)
class Column:
    """A declared column. ``type`` is a Spark SQL type in lower case, e.g. ``decimal(18,2)``."""

    name: str
    type: str


@dataclass(frozen=True)
class Derived:
    """A column computed from others: a name, its Spark SQL expression and the type it has."""

    name: str
    expression: str
    type: str


@dataclass(frozen=True)
class FilesSource:
    """A landing folder. ``path`` is as written, or resolved against the declaration's folder."""

    path: str
    format: FileFormat
    order: FileOrder = "name"
    settle: timedelta = timedelta(seconds=2)
    max_files_per_batch: int = 1000
    max_bytes_per_batch: int = 64 * 1024 * 1024
    csv_header: bool = True
    csv_delimiter: str = ","
    csv_multiline: bool = False


@dataclass(frozen=True)
class EventTime:
    """How a record's event time is read from ``column``.

    ``format`` is ``iso`` (an offset or Z is required), ``epoch_seconds``, ``epoch_millis`` or a
    Spark date pattern; ``zone`` is the IANA zone of a pattern without an offset.
    """

    column: str
    format: str = "iso"
    zone: str | None = None


@dataclass(frozen=True)
class Duplicates:
    """Same id within ``within`` of event time; ``differing`` says what to do when bytes differ."""

    within: timedelta
    differing: OnDiffering = "warn"


@dataclass(frozen=True)
class Record:
    """How one record of a source is identified, placed in time and typed.

    ``event_id`` is empty where the source position identifies the record. ``future_after`` is
    the distance from ``seen_at`` past which an event time is taken for a broken clock.
    """

    event_id: tuple[str, ...]
    event_time: EventTime
    schema: tuple[Column, ...]
    duplicates: Duplicates | None = None
    future_after: timedelta = timedelta(hours=1)
    unknown_fields: OnUnknown = "ignore"


@dataclass(frozen=True)
class Source:
    name: str
    files: FilesSource
    record: Record


@dataclass(frozen=True)
class SilverTable:
    """``schema`` is what the table holds: the record's columns with ``columns`` applied, less
    ``drop``; ``columns`` see the record's fields, ``where`` sees the result of ``columns``."""

    name: str
    source: str
    columns: tuple[Derived, ...]
    drop: tuple[str, ...]
    where: str | None
    schema: tuple[Column, ...]


@dataclass(frozen=True)
class Window:
    """Event-time windows [start, start + size), a new one every ``every``, aligned to the Unix
    epoch in UTC. Tumbling windows have ``every == size``."""

    size: timedelta
    every: timedelta


@dataclass(frozen=True)
class Measure:
    """``function`` over ``argument`` (a Spark SQL expression over silver columns; None for
    ``count(*)``). ``argument_type`` is the argument's type, ``type`` the measure's."""

    name: str
    function: Function
    argument: str | None
    argument_type: str | None
    type: str


@dataclass(frozen=True)
class GoldTable:
    """``columns`` are computed over ``by`` and ``measures`` when the table is written."""

    name: str
    silver: str
    window: Window
    where: str | None
    by: tuple[Derived, ...]
    measures: tuple[Measure, ...]
    columns: tuple[Derived, ...]
    allowed_lateness: timedelta


@dataclass(frozen=True)
class Pipeline:
    """A whole declaration. ``digest`` is the SHA-256 of its meaning: sources' locations and
    resolved secrets are left out, so moving a landing folder is not another pipeline."""

    name: str
    sources: Mapping[str, Source]
    silver: Mapping[str, SilverTable]
    gold: Mapping[str, GoldTable]
    jobs: Jobs
    file: Path
    digest: str

    @property
    def source(self) -> Source:
        """The one source (several are refused today)."""
        return next(iter(self.sources.values()))

    def silver_of(self, source: str) -> tuple[SilverTable, ...]:
        return tuple(t for t in self.silver.values() if t.source == source)

    def gold_of(self, silver: str) -> tuple[GoldTable, ...]:
        return tuple(t for t in self.gold.values() if t.silver == silver)
