"""Bronze: what each record is on its own, then its clock and whether it is a duplicate."""

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
    """A record with its stamps. ``fields`` holds the typed columns of one without a reason; one
    that ``opens`` conforms and is no copy; one that is ``corrected`` failed, and its first
    conforming copy came later and opens."""

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
        """Has a time that may move clocks and be compared with other records' times."""
        return self.event_time is not None and not self.future


def stamp(
    records: Iterable[SourceRecord], rules: Rules, floors: Sequence[Floor] = ()
) -> list[Stamped]:
    """All records in the order in which each partition has them, stamped; ``floors`` in the order
    of commits."""
    stamped = [examine(record, rules) for record in sorted(records, key=place)]
    clocks: dict[int, datetime] = {}
    seen: dict[tuple[int, str], Copies] = defaultdict(Copies)
    for record in stamped:
        partition, own = record.source.partition, record.event_time
        arrival = record.source.arrival
        clock = clocks.get(partition) if arrival is None else clock_at(arrival, stamped)
        at_least = floor_of(record.source, floors)
        before = max((c for c in (clock, at_least) if c), default=None)
        record.clock = before if before and own and before > own else None
        if own is None or record.future:
            continue
        if arrival is None:
            clocks[partition] = max(own, clock or own)
        if record.event_id is not None and rules.event_id and rules.within is not None:
            compare_with_others(record, seen[partition, record.event_id], rules)
    return stamped


def place(record: SourceRecord) -> tuple[int, int, int, int]:
    """A partition's records in their order: those of a load follow those that it came after, and
    loads follow each other."""
    partition, arrival = record.partition, record.arrival
    if arrival is None:
        return partition, record.offset, 0, 0
    return partition, arrival.after.get(partition, -1), arrival.load, record.offset


def clock_at(arrival: Arrival, stamped: Iterable[Stamped]) -> datetime | None:
    """C when a record of a load came."""
    before = [
        one for one in stamped if one.source.offset <= arrival.after.get(one.source.partition, -1)
    ]
    return closing_clock(before, arrival.after)


def floor_of(record: SourceRecord, floors: Sequence[Floor]) -> datetime | None:
    """C as of the batch before the record's own."""
    known = [f.clock for f in floors if f.precedes(record.partition, record.offset)]
    return known[-1] if known else None


@dataclass
class Copies:
    """The records of one id so far: those that conform by themselves, and those that failed while
    no conforming one was near."""

    conforming: list[Stamped] = field(default_factory=list)
    failed: list[Stamped] = field(default_factory=list)


def compare_with_others(record: Stamped, copies: Copies, rules: Rules) -> None:
    """A record that failed is a duplicate of a conforming one, but makes its id known to none."""
    near = [one for one in copies.conforming if are_near(one, record, rules)]
    if record.reason:
        if not near:
            copies.failed.append(record)
    else:
        record.opens = not near
        copies.conforming.append(record)
        # The first conforming copy settles it: another one later corrects nothing.
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
    """Every reason but a differing duplicate, in order; the first one found names the failure."""
    record = Stamped(source)
    if not rules.event_id:
        record.event_id = f"{source.partition}:{source.offset}"
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
        parts = [typed(document.get(name), rules.schema[name]) for name in rules.event_id]
    except ValueError:
        return "missing_id"
    if any(part is None for part in parts):
        return "missing_id"
    record.event_id = id_text(parts)
    return None


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
    """C: the smallest clock over all partitions; one without a clock holds it."""
    clocks: dict[int, datetime | None] = dict.fromkeys(partitions)
    for record in stamped:
        if record.source.arrival is not None:
            continue  # history moves no clock
        before = clocks.setdefault(record.source.partition, None)
        if record.event_time is not None and record.on_time_scale:
            clocks[record.source.partition] = max(before or record.event_time, record.event_time)
    known = [clock for clock in clocks.values() if clock is not None]
    return min(known) if known and len(known) == len(clocks) else None
