"""The content of a declaration, as immutable values.

A pipeline file becomes one :class:`Pipeline`. This module does not read, check or run anything: the
loader (`load.py`) has already refused invalid declarations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

from headgate.declaration.names import TIMES, Columns, TimeColumns, TimeKind, silver_row
from headgate.declaration.suites.model import Suite
from headgate.declaration.types import TIMESTAMP, DataType, Struct
from headgate.machine.loopback import LOOPBACK

OnAmbiguous = Literal["earlier", "later", "quarantine"]
RecordFormat = Literal["json", "csv", "parquet"]
PublishedLayer = Literal["gold", "late", "quarantine", "gate"]
PublishedWhen = Literal["final", "update"]
OnDiffering = Literal["warn", "keep", "quarantine"]
OnUnknown = Literal["ignore", "rescue", "quarantine"]
OnEmpty = Literal["drop", "keep"]
Jobs = Literal["fused", "per_layer"]
AUTO: Final = "auto"
Step = timedelta | Literal["auto"]
"""How often a gold table takes a step; ``auto`` depends on how long its steps take."""
LONGEST_PAUSE = timedelta(minutes=10)
"""The longest pause after a step with ``auto``."""


@dataclass(frozen=True)
class TimeForm:
    """``format`` is ``iso``, an epoch such as ``epoch_millis``, or a date pattern of Spark.
    ``zone`` is the IANA zone of local times: those without an offset. A local time that the clocks
    of the zone show twice is the ``ambiguous`` one of the two instants, or none of them."""

    format: str = "iso"
    zone: str | None = None
    ambiguous: OnAmbiguous = "earlier"


@dataclass(frozen=True)
class EventTime:
    """How a record's event time is read from ``column``, which may be a path into a struct, such as
    ``payload.at``. The other fields are those of ``TimeForm``."""

    column: str
    format: str = "iso"
    zone: str | None = None
    ambiguous: OnAmbiguous = "earlier"

    @property
    def form(self) -> TimeForm:
        return TimeForm(self.format, self.zone, self.ambiguous)


@dataclass(frozen=True)
class Column:
    """A declared column. ``field`` is the name of its field in the record, if it is another one.
    ``times`` says how the timestamps in it are read."""

    name: str
    type: DataType
    field: str | None = None
    times: TimeForm = dataclasses.field(default=TimeForm())

    @property
    def in_record(self) -> str:
        """The name of the field that the column is read from."""
        return self.name if self.field is None else self.field


@dataclass(frozen=True)
class Derived:
    """A column computed from others: a name, its Spark SQL expression and the type it has."""

    name: str
    expression: str
    type: DataType


@dataclass(frozen=True)
class Duplicates:
    """Records with the same id are duplicates if their event times are at most ``within`` apart.
    ``differing`` says what happens if their bytes differ."""

    within: timedelta
    differing: OnDiffering = "warn"


@dataclass(frozen=True)
class Record:
    """How one record of a source is identified, placed in time and typed.

    ``event_id`` has columns, and paths into structs such as ``payload.id``; it is empty if the
    source position identifies the record. An event time more than ``future_after`` past ``seen_at``
    is attributed to a wrong clock.
    """

    event_id: tuple[str, ...]
    event_time: EventTime
    schema: tuple[Column, ...]
    duplicates: Duplicates | None = None
    future_after: timedelta = timedelta(hours=1)
    unknown_fields: OnUnknown = "ignore"
    ignores_tombstones: bool = False

    @property
    def types(self) -> Columns:
        """``schema`` by name."""
        return {column.name: column.type for column in self.schema}

    def times_of(self, column: Column) -> TimeForm:
        """How the timestamps in a column are read: if it is the event time, by the rule of that."""
        is_time = column.name == self.event_time.column and column.type == TIMESTAMP
        return self.event_time.form if is_time else column.times

    def type_at(self, path: str) -> DataType:
        """The type of a column, or of a field inside of structs such as ``payload.id``."""
        name, *steps = path.split(".")
        type_ = self.types[name]
        for step in steps:
            assert isinstance(type_, Struct)
            type_ = dict(type_.fields)[step]
        return type_

    @property
    def one_copy_within(self) -> timedelta | None:
        """Only one of the valid copies of an id counts if they are at most this far apart in event
        time. None if several records may have one id."""
        rule = self.duplicates
        return rule.within if rule and self.event_id and rule.differing != "keep" else None

    @property
    def quarantines_differing(self) -> bool:
        """Whether a copy with other content than an earlier one is quarantined."""
        return self.duplicates is not None and self.duplicates.differing == "quarantine"


@dataclass(frozen=True)
class Source:
    """Where records come from. ``kind`` is the name of a package of ``headgate.flow.sources``, and
    ``reads`` says, as a frozen dataclass of that kind, what is read.

    ``expect_input_every`` and ``expect_event_time_within`` are limits of health checks; None for no
    limit. ``idle_after`` is the time without a record after which tables that read several sources
    do not wait for this one; None if they always do. ``is_only``: whether the pipeline has no other
    source.
    """

    name: str
    record: Record
    kind: str
    reads: Any
    is_only: bool
    expect_input_every: timedelta | None = None
    expect_event_time_within: timedelta | None = None
    idle_after: timedelta | None = None


@dataclass(frozen=True)
class Explode:
    """A record becomes a row for each item of ``array``, a column of the record or a path into its
    structs. The item is the column ``name``. A record whose array is null or has no item becomes
    one row without an item if it is to ``keep``, and otherwise no row."""

    name: str
    array: str
    empty: OnEmpty = "drop"


@dataclass(frozen=True)
class SilverTable:
    """``schema`` has the declared columns of the table: the record's columns and the item of
    ``explode``, with ``columns`` applied, without ``drop``, and without an exploded column.
    ``columns`` can use the record's fields and the item, ``where`` the result of ``columns``. The
    rules of ``suite`` can use ``schema`` and the columns that Headgate adds."""

    name: str
    source: str
    columns: tuple[Derived, ...]
    drop: tuple[str, ...]
    where: str | None
    schema: tuple[Column, ...]
    suite: Suite | None = None
    explode: Explode | None = None

    @property
    def types(self) -> Columns:
        """``schema`` by name."""
        return {column.name: column.type for column in self.schema}

    def row(self, record: Record) -> Columns:
        """All columns of the table, which reads such records."""
        rescues = record.unknown_fields == "rescue"
        return silver_row(self.types, rescues=rescues, has_suite=self.suite is not None)

    @property
    def suite_digest(self) -> str:
        """The digest of the suite; empty without a suite."""
        return self.suite.digest if self.suite else ""


@dataclass(frozen=True)
class MeasureArgument:
    """A Spark SQL expression over silver columns, and its type."""

    text: str
    type: DataType


@dataclass(frozen=True)
class Measure:
    """``function``, a module of ``headgate.flow.gold.measures``, over its ``arguments``, of which
    ``name(*)`` has none. Rows for which ``filter``, a condition over silver columns, is not true do
    not count.
    """

    name: str
    function: str
    arguments: tuple[MeasureArgument, ...]
    filter: str | None
    type: DataType

    def argument(self, place: int = 0) -> str:
        """The SQL of an argument, which is null in the rows that do not count. That of ``name(*)``
        is null in no other row."""
        text = self.arguments[place].text if self.arguments else "1"
        return text if self.filter is None else f"case when {self.filter} then {text} end"


@dataclass(frozen=True)
class LateSchedule:
    """Late rows are replayed once in every interval ``replay_every``, if their event time is at
    most ``within`` behind the watermark."""

    replay_every: timedelta
    within: timedelta


@dataclass(frozen=True)
class GoldTable:
    """``kind`` names the operator, a folder of ``headgate.flow.gold.operators``, and ``operator``
    is the value that it has built. ``columns`` are computed from ``by`` and ``measures`` when the
    table is written. ``salt`` is the number of parts into which the first step of a fold divides
    each key; None for one part. ``step`` is the time from the begin of a step to that of the next
    one, or ``AUTO``; None for a step with every batch. ``live``: the table of an append operator
    also has the results that are not final yet. A version that breaks a rule of ``suite``
    does not become visible. ``late`` says when late rows are replayed; None if they are replayed
    only by hand. ``time`` is the time by which rows are in windows. A table reads rows of the
    silver tables ``inputs``, or, as a *rollup*, the final rows of the gold table ``reads``, which
    come from these. ``sources`` has the source of each input. Only append operators have several
    inputs; their ``columns`` are computed from rows of the inputs."""

    name: str
    inputs: tuple[str, ...]
    sources: tuple[str, ...]
    kind: str
    operator: Any
    where: str | None
    by: tuple[Derived, ...]
    measures: tuple[Measure, ...]
    columns: tuple[Derived, ...]
    allowed_lateness: timedelta = timedelta(0)
    salt: int | None = None
    step: Step | None = None
    live: bool = False
    suite: Suite | None = None
    late: LateSchedule | None = None
    time: TimeKind = "event"
    reads: str | None = None

    @property
    def silver(self) -> str:
        """The silver table of a table that reads one."""
        return self.inputs[0]

    @property
    def is_rollup(self) -> bool:
        return self.reads is not None

    @property
    def times(self) -> TimeColumns:
        """The columns of silver for this time."""
        return TIMES[self.time]

    @property
    def counter(self) -> str | None:
        """The first measure that counts rows; None if there is none."""
        counts = (m for m in self.measures if m.function == "count" and not m.arguments)
        return next((m.name for m in counts if m.filter is None), None)

    @property
    def types(self) -> Columns:
        """The declared columns of the table: keys, measures and computed columns."""
        named: tuple[Derived | Measure, ...] = (*self.by, *self.measures, *self.columns)
        return {item.name: item.type for item in named}


@dataclass(frozen=True)
class Publication:
    """Rows of a table that go to a sink. ``kind`` names the sink, a package of
    ``headgate.flow.publish.sinks``, and ``sink`` is the value that it has built. ``table`` is the
    name of a gold table for ``gold``, ``late`` and ``gate`` (the events of its gate), and of the
    source for ``quarantine``. ``when`` is for gold only: the rows of final windows, or each change
    of a window; None for other layers."""

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
    keep: int = 5
    keep_for: timedelta = timedelta(days=7)


@dataclass(frozen=True)
class CircuitBreaker:
    """Publications pause while more than the share ``refused_above`` of the records of the newest
    ``batches`` is quarantined or rejected, or while these batches have fewer than ``records_below``
    records. None for no limit."""

    refused_above: float | None = None
    records_below: int | None = None
    batches: int = 10


@dataclass(frozen=True)
class BackfillSchedule:
    """Airflow computes gold again in intervals of the length ``every``, and compares the rows.
    ``mode`` says what else a run does, and ``publish`` what happens to rows that differ
    (``declaration.keys.settings``)."""

    every: timedelta
    mode: Literal["verify", "late", "rebuild"] = "verify"
    publish: Literal["when_equal", "always", "after_approval"] = "when_equal"


@dataclass(frozen=True)
class MetricsSettings:
    """The driver serves metrics at ``host`` and ``port``; without a port, it serves none. Clients
    send the token in ``token_file``; None if they need no token. ``latency_within`` is the limit
    for the time from arrival to gold; None for the default."""

    port: int | None = None
    host: str = LOOPBACK
    token_file: Path | None = None
    latency_within: timedelta | None = None


@dataclass(frozen=True)
class Pipeline:
    """A whole declaration. ``digest`` is the SHA-256 of its meaning. The meaning contains neither
    the locations of sources nor resolved secrets, so moving a landing folder does not change the
    digest. ``definitions`` has the digest of each table together with all tables upstream, by the
    table's path. ``text`` is the declaration as it was read, with its placeholders."""

    name: str
    sources: Mapping[str, Source]
    silver: Mapping[str, SilverTable]
    gold: Mapping[str, GoldTable]
    file: Path
    digest: str
    definitions: Mapping[str, str]
    jobs: Jobs = "fused"
    publish: Mapping[str, Publication] = field(default_factory=dict)
    savepoints: SavepointSchedule | None = None
    circuit_breaker: CircuitBreaker | None = None
    backfill: BackfillSchedule | None = None
    metrics: MetricsSettings | None = None
    text: str = field(default="", repr=False, compare=False)

    @property
    def with_late_rows(self) -> dict[str, GoldTable]:
        """The gold tables that read silver, and so have a late table: those that are no
        rollups."""
        return {name: table for name, table in self.gold.items() if not table.is_rollup}

    @property
    def suites(self) -> dict[str, str]:
        """The texts of its suites, by their names."""
        silver = (table.suite for table in self.silver.values())
        found = (*silver, *(table.suite for table in self.gold.values()))
        return {suite.name: suite.text for suite in found if suite is not None}
