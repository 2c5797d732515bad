"""Bronze: what each record is on its own, then its watermark at arrival and whether it is a
duplicate."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.oracle.parse import event_time, id_text, in_utf8, json_text, parse_document, typed
from tests.oracle.rules import Arrival, Floor, Row, Rules, SourceRecord


@dataclass
class Stamped:
    """A record with the results of bronze. ``fields`` holds the typed columns of a valid record. A
    record that ``opens`` is valid and not a copy. A ``corrected`` record is invalid, and its first
    valid copy came later and opens."""

    source: SourceRecord
    event_id: str | None = None
    event_time: datetime | None = None
    future: bool = False
    clock: datetime | None = None
    duplicate: bool = False
    differing: bool = False
    reason: str | None = None
    column: str | None = None
    opens: bool = False
    corrected: bool = False
    fields: Row = field(default_factory=dict)

    @property
    def on_time_scale(self) -> bool:
        """Whether its event time may advance the watermark, and is compared with those of other
        records."""
        return self.event_time is not None and not self.future


def stamp(
    records: Iterable[SourceRecord], rules: Rules, floors: Sequence[Floor] = ()
) -> list[Stamped]:
    """All records with their stamps, in the order of each partition; ``floors`` are in the order of
    commits."""
    stamped = [examine(record, rules) for record in sorted(records, key=place)]
    clocks: dict[int, datetime] = {}
    seen: dict[tuple[int, str], Copies] = defaultdict(Copies)
    for record in stamped:
        partition, own = record.source.partition, record.event_time
        arrival = record.source.arrival
        clock = clocks.get(partition) if arrival is None else clock_at(arrival, stamped)
        at_least = floor_of(record.source, floors)
        before = max((c for c in (clock, at_least) if c), default=None)
        if own is None or not record.on_time_scale:
            continue
        record.clock = before if before and before > own else None
        if arrival is None:
            clocks[partition] = max(own, clock or own)
        if record.event_id is not None and rules.event_id and rules.within is not None:
            compare_with_others(record, seen[partition, record.event_id], rules)
    return stamped


def place(record: SourceRecord) -> tuple[int, int, int, int]:
    """The sort key within a partition: records of a load follow the source's records that they came
    after, and loads follow each other."""
    partition, arrival = record.partition, record.arrival
    if arrival is None:
        return partition, record.offset, 0, 0
    return partition, arrival.after.get(partition, -1), arrival.load, record.offset


def clock_at(arrival: Arrival, stamped: Iterable[Stamped]) -> datetime | None:
    """The watermark of the source when a record of a load came."""
    before = [
        one for one in stamped if one.source.offset <= arrival.after.get(one.source.partition, -1)
    ]
    return closing_clock(before, arrival.after)


def floor_of(record: SourceRecord, floors: Sequence[Floor]) -> datetime | None:
    """The watermark of the source as of the batch before the record's own."""
    known = [f.clock for f in floors if f.precedes(record.partition, record.offset)]
    return known[-1] if known else None


@dataclass
class Copies:
    """The earlier records of one id: those that are valid on their own, and invalid ones that had
    no valid copy near them when they came."""

    conforming: list[Stamped] = field(default_factory=list)
    failed: list[Stamped] = field(default_factory=list)


def compare_with_others(record: Stamped, copies: Copies, rules: Rules) -> None:
    """An invalid record can be a duplicate of a valid one, but no record is a duplicate of an
    invalid one."""
    near = [one for one in copies.conforming if are_near(one, record, rules)]
    if record.reason:
        if not near:
            copies.failed.append(record)
    else:
        record.opens = not near
        copies.conforming.append(record)
        # The first valid copy decides: a later copy corrects nothing.
        settled = [one for one in copies.failed if are_near(one, record, rules)]
        copies.failed = [one for one in copies.failed if one not in settled]
        for one in settled:
            one.corrected = record.opens
    if not near:
        return
    differing = all(one.source.value != record.source.value for one in near)
    record.duplicate = not differing or rules.differing == "warn"
    record.differing = differing and record.duplicate
    if differing and rules.differing == "quarantine" and not record.reason:
        record.reason = "differing_duplicate"


def are_near(one: Stamped, other: Stamped, rules: Rules) -> bool:
    assert one.event_time is not None
    assert other.event_time is not None
    assert rules.within is not None
    return abs(one.event_time - other.event_time) <= rules.within


def examine(source: SourceRecord, rules: Rules) -> Stamped:
    """Finds every reason except a differing duplicate. The first one, in a fixed order, names the
    failure."""
    record = Stamped(source)
    if not rules.event_id:
        record.event_id = f"{source.partition}:{source.offset}"
    if source.value is None:
        record.reason = "ignored" if rules.ignores_tombstones else "tombstone"
        return record
    try:
        document = parse_document(source.value)
    except (ValueError, RecursionError):
        record.reason = "unparsable"
        return record
    if not isinstance(document, dict):
        record.reason = "not_an_object"
        return record
    reasons = [
        find_id(record, document, rules),
        find_time(record, document, rules),
        "future" if record.future else None,
        find_fields(record, document, rules),
    ]
    record.reason = next((reason for reason in reasons if reason), None)
    record.column = record.column if record.reason == "wrong_type" else None
    return record


def find_id(record: Stamped, document: dict[str, Any], rules: Rules) -> str | None:
    if not rules.event_id:
        return None
    given = [document.get(name) for name in rules.event_id]
    if any(isinstance(value, str) and re.search("[\ud800-\udfff]", value) for value in given):
        return "missing_id"  # half of a surrogate pair
    try:
        record.event_id = id_text(given, [rules.schema[name] for name in rules.event_id])
    except ValueError:
        return "missing_id"
    return None if record.event_id is not None else "missing_id"


def find_time(record: Stamped, document: dict[str, Any], rules: Rules) -> str | None:
    value = document.get(rules.time_column)
    if value is None:
        return "missing_time"
    try:
        record.event_time = event_time(value, rules.time_format)
    except ValueError:
        return "unparsable_time"
    ahead = record.event_time - record.source.ingested_at
    record.future = ahead > rules.future_after or record.event_time.year > 9989
    return None


def find_fields(record: Stamped, document: dict[str, Any], rules: Rules) -> str | None:
    for name, type_ in rules.schema.items():
        try:
            record.fields[name] = typed(document.get(name), type_)
        except ValueError:
            record.column = name
            return "wrong_type"
    unknown = {name: value for name, value in document.items() if name not in rules.schema}
    if unknown and rules.unknown_fields == "quarantine":
        return "unknown_field"
    if rules.unknown_fields == "rescue":
        record.fields["_rescued"] = in_utf8(json_text(unknown)) if unknown else None
    return None


def closing_clock(stamped: Iterable[Stamped], partitions: Iterable[int]) -> datetime | None:
    """The watermark of the source: the smallest of its partitions; none while a partition has
    none."""
    clocks: dict[int, datetime | None] = dict.fromkeys(partitions)
    for record in stamped:
        if record.source.arrival is not None:
            continue  # a load does not move the watermark
        before = clocks.setdefault(record.source.partition, None)
        if record.event_time is not None and record.on_time_scale:
            clocks[record.source.partition] = max(before or record.event_time, record.event_time)
    known = [clock for clock in clocks.values() if clock is not None]
    return min(known) if known and len(known) == len(clocks) else None
