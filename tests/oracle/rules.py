"""What the oracle is told: records as they arrived, and the rules of one pipeline.

Expressions are plain Python functions over a row (a dict), written by the test beside the SQL
that it gives to the engine. Nothing here comes from the engine, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

Row = dict[str, Any]
Expression = Callable[[Row], Any]


@dataclass(frozen=True)
class Arrival:
    """When a record of load ``load`` came: after the source's offsets up to ``after[partition]``,
    and after so many happenings."""

    load: int
    after: Mapping[int, int]
    happenings: int = 0


@dataclass(frozen=True)
class SourceRecord:
    """One record as the source has it. ``offset`` is a total order within ``partition``;
    ``ingested_at`` is when it was there at the latest: what "future" is measured from. One that a
    load has brought has an ``arrival``, and an offset below those of the source."""

    partition: int
    offset: int
    value: bytes | None
    ingested_at: datetime
    arrival: Arrival | None = None


@dataclass(frozen=True)
class RowRule:
    """``is_met`` is None for a row of which the rule says nothing. A row that breaks a rule that
    ``rejects`` is kept out of the table."""

    is_met: Callable[[Row], bool | None]
    rejects: bool = True
    severity: str = "critical"


@dataclass(frozen=True)
class SilverRules:
    """``columns`` see the record's fields, ``where`` sees their result (before ``drop``), and the
    rules of ``suite`` see what passes it (after ``drop``)."""

    columns: Mapping[str, Expression] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    where: Callable[[Row], bool | None] | None = None
    suite: Mapping[str, RowRule] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """``argument`` is None for ``count(*)``; ``type`` is the Spark type of the result."""

    function: str
    argument: Expression | None
    type: str


@dataclass(frozen=True)
class GoldRules:
    """Windows [start, start + size), one every ``every``, aligned to the Unix epoch."""

    silver: str
    size: timedelta
    every: timedelta
    by: Mapping[str, Expression]
    measures: Mapping[str, Measure]
    where: Callable[[Row], bool | None] | None = None
    columns: Mapping[str, Expression] = field(default_factory=dict)
    allowed_lateness: timedelta = timedelta(0)


@dataclass(frozen=True)
class Rules:
    """``within`` is None where no duplicates are declared, ``event_id`` empty where no id is."""

    event_id: tuple[str, ...]
    time_column: str
    time_format: str
    schema: Mapping[str, str]
    silver: Mapping[str, SilverRules]
    gold: Mapping[str, GoldRules]
    within: timedelta | None = None
    differing: str = "warn"
    future_after: timedelta = timedelta(hours=1)
    unknown_fields: str = "ignore"


@dataclass(frozen=True)
class Closing:
    """One ``--drain``: it saw offsets up to ``after[partition]`` (none of a partition
    that is left out) and closed each gold table through ``through[table]``, by default the
    greatest window end that the table held at that moment."""

    after: Mapping[int, int]
    through: Mapping[str, datetime] | None = None

    def saw(self, partition: int, offset: int) -> bool:
        return offset <= self.after.get(partition, -1)


@dataclass(frozen=True)
class Replay:
    """One replay of late pairs of ``table``, after the same offsets as a ``Closing``: of those
    with an event time in [begin, end) and with these values of ``by``, or of one load's."""

    after: Mapping[int, int]
    table: str
    begin: datetime | None = None
    end: datetime | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    load: int | None = None

    def saw(self, partition: int, offset: int) -> bool:
        return offset <= self.after.get(partition, -1)

    def means(self, pair: Row, by: Mapping[str, Any]) -> bool:
        time = pair["_event_time"]
        within = (self.begin is None or time >= self.begin) and (
            self.end is None or time < self.end
        )
        return within and all(by[name] == value for name, value in self.keys.items())


Happening = Closing | Replay
"""What happens to the tables between two batches, in its order."""


@dataclass(frozen=True)
class Floor:
    """The watermark as bronze recorded it, once offsets before ``ends[partition]`` were read.

    Where partitions idle, C follows from when they were seen to: the one thing that cannot be told
    from the records. No clock of a record behind ``ends`` is less than it."""

    ends: Mapping[int, int]
    clock: datetime | None

    def precedes(self, partition: int, offset: int) -> bool:
        return self.ends.get(partition, 0) <= offset
