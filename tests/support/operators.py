"""Gold tables of every operator, for the contract's tests. Each new operator needs a case here."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.load import load
from headgate.declaration.model import GoldTable, Pipeline

DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {{path: landing, format: json}}
    record: {{event_id: [id], event_time: {{column: at}}, schema: {{id: string, at: timestamp}}}}
silver: {{clean: {{from: orders, {silver}}}}}
gold:
  results:
    from: clean
    {keys}
    by: [id]
    measures: {{all: count(*)}}
"""


@dataclass(frozen=True)
class Case:
    """``keys`` of a gold table; ``other`` keys have another meaning; ``wrong`` keys are reported at
    the path ``at`` with the text ``problem``."""

    name: str
    keys: str
    other: str
    wrong: str
    at: str
    problem: str


CASES = (
    Case(
        "tumbling",
        "window: {tumbling: 1 minute}\n    allowed_lateness: 10 s",
        "window: {tumbling: 2 minutes}\n    allowed_lateness: 10 s",
        "window: {tumbling: 0 s}\n    allowed_lateness: 10 s",
        "window.tumbling",
        "too little",
    ),
    Case(
        "hopping",
        "window: {hopping: {size: 3 minutes, every: 1 minute}}\n    allowed_lateness: 10 s",
        "window: {hopping: {size: 3 minutes, every: 30 s}}\n    allowed_lateness: 10 s",
        "window: {hopping: {size: 3 minutes, every: 2 minutes}}\n    allowed_lateness: 10 s",
        "window.hopping.size",
        "not a multiple",
    ),
    Case(
        "running",
        "running: true",
        "window: {tumbling: 1 minute}\n    allowed_lateness: 10 s",
        "running: false",
        "running",
        "can only be true",
    ),
    Case(
        "tumbling",
        "window: {tumbling: {size: 1 minute, offset: 7 s}}\n    allowed_lateness: 10 s",
        "window: {tumbling: 1 minute}\n    allowed_lateness: 10 s",
        "window: {tumbling: {size: 1 minute, offset: 67 s}}\n    allowed_lateness: 10 s",
        "window.tumbling.offset",
        "67 seconds is not less than size (1 minute)",
    ),
    Case(
        "hopping",
        "window: {hopping: {size: 3 min, every: 1 min, offset: 7 s}}\n    allowed_lateness: 10 s",
        "window: {hopping: {size: 3 min, every: 1 min, offset: 8 s}}\n    allowed_lateness: 10 s",
        "window: {hopping: {size: 3 min, every: 1 min, offset: 2 min}}\n    allowed_lateness: 10 s",
        "window.hopping.offset",
        "2 minutes is not less than every (1 minute)",
    ),
    Case(
        "calendar",
        "window: {calendar: {unit: day, zone: Europe/Berlin}}\n    allowed_lateness: 10 s",
        "window: {calendar: {unit: day, zone: Europe/London}}\n    allowed_lateness: 10 s",
        "window: {calendar: {unit: day, zone: Europe/Berln}}\n    allowed_lateness: 10 s",
        "window.calendar.zone",
        "'Europe/Berln' is not an IANA time zone",
    ),
    Case(
        "calendar",
        "window: {calendar: {unit: week, zone: UTC}}\n    allowed_lateness: 10 s",
        "window: {calendar: {unit: month, zone: UTC}}\n    allowed_lateness: 10 s",
        "window: {calendar: {unit: year, zone: UTC}}\n    allowed_lateness: 10 s",
        "window.calendar.unit",
        "must be one of day, week, month",
    ),
    Case(
        "session",
        "window: {session: 30 minutes}\n    allowed_lateness: 10 s",
        "window: {session: {gap: 31 minutes}}\n    allowed_lateness: 10 s",
        "window: {session: {gap: 0 s}}\n    allowed_lateness: 10 s",
        "window.session.gap",
        "too little",
    ),
    Case(
        "tumbling",
        "window: {tumbling: 1 minute, time: arrival}",
        "window: {tumbling: 1 minute}\n    allowed_lateness: 0 s",
        "window: {tumbling: 1 minute, time: arrival}\n    allowed_lateness: 0 s",
        "allowed_lateness",
        "has no meaning with 'window.time'; remove it",
    ),
    Case(
        "calendar",
        "window: {calendar: {unit: day, zone: UTC}, time: arrival}",
        "window: {calendar: {unit: day, zone: UTC}}\n    allowed_lateness: 0 s",
        "window: {calendar: {unit: day, zone: UTC}, time: read}",
        "window.time",
        "must be one of arrival, not 'read'",
    ),
    Case(
        "count",
        "window: {count: 100}",
        "window: {count: {size: 101}}",
        "window: {count: 0}",
        "window.count",
        "too little",
    ),
    Case(
        "slots",
        "slots: {every: 7 minutes, origin: '2026-03-01T00:03:00'}",
        "slots: {every: 7 minutes, origin: '2026-03-01T00:04:00'}",
        "slots: {every: 7 minutes, origin: noon}",
        "slots.origin",
        "is not a time",
    ),
)


def declared(keys: str, silver: str = "") -> Pipeline:
    """A pipeline with one gold table with these keys; ``silver`` are more keys of its silver table.
    Raises DeclarationError."""
    text = DECLARATION.format(keys=keys, silver=silver)
    return load("/shop/pipelines/shop.yml", text=text)


def table(keys: str) -> GoldTable:
    return declared(keys).gold["results"]
