"""The input of the oracle: records in the order of arrival, and the rules of one pipeline.

Expressions are plain Python functions over a row (a dict), which the test writes beside the SQL for
the engine. On purpose, nothing here comes from the engine.
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
    """When a record of load ``load`` arrived: after the source's offsets up to
    ``after[partition]``, and after the first ``happenings`` happenings."""

    load: int
    after: Mapping[int, int]
    happenings: int = 0


@dataclass(frozen=True)
class SourceRecord:
    """One record in its source. ``offset`` is a total order within ``partition``. By
    ``ingested_at``, the record had arrived; a future record is measured from this time. A record of
    a load has an ``arrival``, and an offset below those of the source."""

    partition: int
    offset: int
    value: bytes | None
    ingested_at: datetime
    arrival: Arrival | None = None


@dataclass(frozen=True)
class RowRule:
    """``is_met`` returns None if the rule does not apply to a row. A row that breaks a rule that
    ``rejects`` is kept out of the table."""

    is_met: Callable[[Row], bool | None]
    rejects: bool = True
    severity: str = "critical"


@dataclass(frozen=True)
class Explode:
    """Each item of ``array``, a field or a path into dicts, is a row with the field ``name``. A
    record without items has a row without an item if it is kept."""

    name: str
    array: str
    keeps_empty: bool = False

    def items(self, fields: Row) -> list[Any]:
        found: Any = fields
        for step in self.array.split("."):
            found = None if found is None else found[step]
        return list(found) if found else [None] * self.keeps_empty


@dataclass(frozen=True)
class SilverRules:
    """``columns`` get the record's fields and the item of ``explode``. ``where`` gets their result
    (before ``drop``), and the rules of ``suite`` get the rows that pass it (after ``drop``)."""

    explode: Explode | None = None
    columns: Mapping[str, Expression] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    where: Callable[[Row], bool | None] | None = None
    suite: Mapping[str, RowRule] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """``argument`` is None for ``count(*)``; ``type`` is the Spark type of the result. ``order`` is
    the second argument of ``min_by``, ``max_by`` and ``top_n``, ``share`` that of ``percentile``,
    ``most`` the last argument of ``top_n`` and ``collect_list``. Only rows that meet ``where``
    count."""

    function: str
    argument: Expression | None
    type: str
    order: Expression | None = None
    where: Callable[[Row], bool | None] | None = None
    share: float = 0.5
    most: int = 0


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
    """``within`` is None if no duplicates are declared, ``event_id`` is empty if no id is."""

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
    ignores_tombstones: bool = False


@dataclass(frozen=True)
class Closing:
    """One ``--drain``. It saw the offsets up to ``after[partition]``, and none of a partition that
    is not in ``after``. It closed each gold table up to ``through[table]``, by default the greatest
    window end in the table at that moment."""

    after: Mapping[int, int]
    through: Mapping[str, datetime] | None = None

    def saw(self, partition: int, offset: int) -> bool:
        return offset <= self.after.get(partition, -1)


@dataclass(frozen=True)
class Replay:
    """One replay of late pairs of ``table``, after the same offsets as a ``Closing``: of the pairs
    with an event time in [begin, end) and these values of ``by``; if ``load`` is given, only of
    this load."""

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


@dataclass(frozen=True)
class OtherDecision:
    """A decision that changes no gold table, such as the one to begin a load. It has a number among
    the decisions."""


Happening = Closing | Replay | OtherDecision
"""A decision between two batches."""


@dataclass(frozen=True)
class Floor:
    """The watermark that bronze had recorded when the offsets before ``ends[partition]`` were read.

    If partitions are idle, the watermark depends on when bronze noticed it, which cannot be derived
    from the records. A record at or after ``ends`` has a watermark at arrival of at least
    ``clock``.
    """

    ends: Mapping[int, int]
    clock: datetime | None

    def precedes(self, partition: int, offset: int) -> bool:
        return self.ends.get(partition, 0) <= offset
