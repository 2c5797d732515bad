"""What a declaration says, as inert values.

A pipeline file becomes one :class:`Pipeline`. Nothing here reads, checks or runs anything: the
loader (`load.py`) has already refused whatever does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from headgate.declaration.suites.model import Suite
from headgate.declaration.types import DataType

RecordFormat = Literal["json", "csv", "parquet"]
PublishedLayer = Literal["gold", "late", "quarantine", "gate"]
PublishedWhen = Literal["final", "update"]
OnDiffering = Literal["warn", "keep", "quarantine"]
OnUnknown = Literal["ignore", "rescue", "quarantine"]
Jobs = Literal["fused", "per_layer"]


@dataclass(frozen=True)
class Column:
    """A declared column."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Derived:
    """A column computed from others: a name, its Spark SQL expression and the type it has."""

    name: str
    expression: str
    type: DataType


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

    @property
    def one_copy_within(self) -> timedelta | None:
        """Of all valid copies of an id that are at most so far apart in event time, one counts.
        None where several records may have one id."""
        rule = self.duplicates
        return rule.within if rule and self.event_id and rule.differing != "keep" else None

    @property
    def quarantines_differing(self) -> bool:
        """Whether a copy with other content than an earlier one is quarantined."""
        return self.duplicates is not None and self.duplicates.differing == "quarantine"


@dataclass(frozen=True)
class Source:
    """Where records come from. ``kind`` is the name of a member of ``declaration.sources``, and
    ``reads`` says, as a frozen dataclass of that kind, what is read.

    ``expect_input_every`` and ``expect_event_time_within`` are what health checks ask of it; None
    asks nothing.
    """

    name: str
    record: Record
    kind: str
    reads: Any
    expect_input_every: timedelta | None = None
    expect_event_time_within: timedelta | None = None


@dataclass(frozen=True)
class SilverTable:
    """``schema`` is what the table holds: the record's columns with ``columns`` applied, less
    ``drop``; ``columns`` see the record's fields, ``where`` sees the result of ``columns``. The
    rules of ``suite`` see ``schema`` and what Headgate adds to it."""

    name: str
    source: str
    columns: tuple[Derived, ...]
    drop: tuple[str, ...]
    where: str | None
    schema: tuple[Column, ...]
    suite: Suite | None = None

    @property
    def suite_digest(self) -> str:
        """That of the suite; empty without one."""
        return self.suite.digest if self.suite else ""


@dataclass(frozen=True)
class Measure:
    """``function``, a module of ``headgate.measures``, over ``argument`` (a Spark SQL expression
    over silver columns; None for ``count(*)``). ``argument_type`` is the argument's type, ``type``
    the measure's."""

    name: str
    function: str
    argument: str | None
    argument_type: DataType | None
    type: DataType


@dataclass(frozen=True)
class LateSchedule:
    """Late rows are replayed ``every`` so often, those with an event time up to ``within`` behind
    the watermark."""

    every: timedelta
    within: timedelta


@dataclass(frozen=True)
class GoldTable:
    """``kind`` names the operator, a folder of ``headgate.operators``, and ``operator`` is what it
    has built. ``columns`` are computed over ``by`` and ``measures`` when the table is written.
    ``salt`` is how many parts the first step of folding spreads a key over; None for one. A version
    that breaks a rule of ``suite`` does not become visible. ``late`` is when late rows are
    replayed; None if a person does it."""

    name: str
    silver: str
    kind: str
    operator: Any
    where: str | None
    by: tuple[Derived, ...]
    measures: tuple[Measure, ...]
    columns: tuple[Derived, ...]
    allowed_lateness: timedelta
    salt: int | None = None
    suite: Suite | None = None
    late: LateSchedule | None = None

    @property
    def counter(self) -> str | None:
        """The first measure that counts rows; None if there is none."""
        counts = (m.name for m in self.measures if m.function == "count" and m.argument is None)
        return next(counts, None)

    @property
    def schema(self) -> tuple[Column, ...]:
        """The author's part of what the table holds: keys, measures and columns."""
        named: tuple[Derived | Measure, ...] = (*self.by, *self.measures, *self.columns)
        return tuple(Column(item.name, item.type) for item in named)


@dataclass(frozen=True)
class Publication:
    """Rows of a table that go to a sink. ``kind`` names the sink, a package of ``headgate.sinks``,
    and ``sink`` is what it has built. ``table`` is a gold table's name for ``gold``,
    ``late`` and ``gate`` (what happens at its gate), the source's for ``quarantine``; ``when`` is
    of gold alone: the rows of final windows, or each change of a window."""

    name: str
    layer: PublishedLayer
    table: str
    when: PublishedWhen | None
    kind: str
    sink: Any


@dataclass(frozen=True)
class SavepointSchedule:
    """How often a running pipeline takes a savepoint, and which are kept: the newest ``keep`` and
    those younger than ``keep_for``."""

    every: timedelta
    keep: int
    keep_for: timedelta


@dataclass(frozen=True)
class CircuitBreaker:
    """Publications pause while more than the share ``refused_above`` of the records of the newest
    ``batches`` is quarantined or rejected, or while these batches have fewer than ``records_below``
    records. None asks nothing."""

    refused_above: float | None
    records_below: int | None
    batches: int


@dataclass(frozen=True)
class BackfillSchedule:
    """Airflow computes each interval of gold of the length ``every`` again, and compares. ``mode``
    and ``publish`` say what is done before, and with what differs (``keys.airflow``)."""

    every: timedelta
    mode: Literal["verify", "late", "rebuild"]
    publish: Literal["when_equal", "always", "after_approval"]


@dataclass(frozen=True)
class MetricsSettings:
    """The driver serves metrics at ``host`` and ``port``; without a port, it serves none. Clients
    send the token in ``token_file``; None asks for none. ``latency_within`` is the limit from
    arrival to gold; None for the default."""

    port: int | None
    host: str
    token_file: Path | None
    latency_within: timedelta | None


@dataclass(frozen=True)
class Pipeline:
    """A whole declaration. ``digest`` is the SHA-256 of its meaning: sources' locations and
    resolved secrets are left out, so moving a landing folder is not another pipeline.
    ``definitions`` is the same of each table and all above it, by the table's path. ``text`` is the
    declaration as it was read, placeholders and all."""

    name: str
    sources: Mapping[str, Source]
    silver: Mapping[str, SilverTable]
    gold: Mapping[str, GoldTable]
    jobs: Jobs
    file: Path
    digest: str
    definitions: Mapping[str, str]
    publish: Mapping[str, Publication] = field(default_factory=dict)
    savepoints: SavepointSchedule | None = None
    circuit_breaker: CircuitBreaker | None = None
    backfill: BackfillSchedule | None = None
    metrics: MetricsSettings | None = None
    text: str = field(default="", repr=False, compare=False)

    @property
    def suites(self) -> dict[str, str]:
        """The texts of its suites, by their names."""
        silver = (table.suite for table in self.silver.values())
        found = (*silver, *(table.suite for table in self.gold.values()))
        return {suite.name: suite.text for suite in found if suite is not None}
