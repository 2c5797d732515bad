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
silver:
  clean: {{from: orders, {silver}}}
  other: {{from: orders, columns: {{place: id, size: length(id)}}}}
gold:
  results:
    {keys}
    {rest}
"""


@dataclass(frozen=True)
class Rest:
    """The keys of a table beside those of its operator. ``value`` is an expression for a column. A
    table that must have a column has ``column``."""

    keys: str
    value: str
    column: str = ""

    def text(self, column: str) -> str:
        """The keys, with a column of this name, if it is not empty."""
        name = column or self.column
        return f"{self.keys}\n    columns:\n      {name}: {self.value}" if name else self.keys


FOLD = Rest("from: clean\n    by: [id]\n    measures: {all: count(*)}", "all + 1")
OVER = Rest("allowed_lateness: 10 s", "rows + 1", "more")
APPEND = Rest("allowed_lateness: 10 s", "coalesce(clean.id, other.id)", "either")


@dataclass(frozen=True)
class Case:
    """``keys`` of a gold table; ``other`` keys have another meaning; ``wrong`` keys are reported at
    the path ``at`` with the text ``problem``. ``rest`` are the table's other keys."""

    name: str
    keys: str
    other: str
    wrong: str
    at: str
    problem: str
    rest: Rest = FOLD

    def declared(self, keys: str | None = None, silver: str = "", column: str = "") -> Pipeline:
        """A pipeline with one gold table, by default with the ``keys`` of the case, and the other
        arguments as in ``declared``."""
        return declared(keys or self.keys, silver, self.rest, column)

    @property
    def table(self) -> GoldTable:
        return self.declared().gold["results"]


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
    Case(
        "join",
        "join: {left: clean, right: other, on: [id], within: 1 hour}",
        "join: {left: clean, right: other, on: [id], within: 2 hours}",
        "join: {left: clean, right: othr, on: [id], within: 1 hour}",
        "join.right",
        "there is no silver table 'othr'",
        APPEND,
    ),
    Case(
        "join",
        "join: {left: clean, right: other, on: {id: place}, within: {before: 1 s}, kind: left}",
        "join: {left: clean, right: other, on: [id], within: {before: 1 s}, kind: left}",
        "join: {left: clean, right: other, on: {id: size}, within: {before: 1 s}, kind: left}",
        "join.on.id",
        "clean.id is a string, and other.size is an int",
        APPEND,
    ),
    Case(
        "join",
        "join: {left: other, right: clean, on: [id], within: {before: 1 s, after: 2 s}, "
        "kind: full, where: other.size > 3}",
        "join: {left: other, right: clean, on: [id], within: {before: 1 s, after: 2 s}, "
        "kind: full, where: other.size > 4}",
        "join: {left: other, right: clean, on: [id], within: {before: 1 s, after: 2 s}, "
        "kind: full, where: other.size}",
        "join.where",
        "must be a condition, not an int",
        APPEND,
    ),
    Case(
        "as_of",
        "as_of: {left: clean, right: other, on: [id], within: 1 hour}",
        "as_of: {left: other, right: clean, on: [id], within: 1 hour}",
        "as_of: {left: clean, right: other, on: [id], within: 0 s}",
        "as_of.within",
        "too little",
        APPEND,
    ),
    Case(
        "over",
        "over: {table: clean, range: 1 hour, by: {key: clean.id}, measures: {rows: count(*)}}",
        "over: {table: clean, range: 2 hours, by: {key: clean.id}, measures: {rows: count(*)}}",
        "over: {table: clean, range: 1 hour, measures: {rows: first(clean.id)}}",
        "over.measures.rows",
        "first() does not slide from row to row",
        OVER,
    ),
    Case(
        "over",
        "over: {table: clean, rows: 9, within: 1 hour, measures: {rows: count(*)}}",
        "over: {table: clean, rows: 10, within: 1 hour, measures: {rows: count(*)}}",
        "over: {table: clean, rows: 9, measures: {rows: count(*)}}",
        "over.rows",
        "needs 'within', such as `within: 1 day`",
        OVER,
    ),
    Case(
        "union",
        "union: [clean, other]",
        "union: [other, clean]",
        "union: [clean, clear]",
        "union",
        "there is no silver table 'clear'",
        APPEND,
    ),
)
FOLDS = tuple(case for case in CASES if case.rest is FOLD)


def text_of(keys: str, silver: str = "", rest: Rest = FOLD, column: str = "") -> str:
    """The declaration of a pipeline with one gold table with these keys. ``silver`` are more keys
    of its first silver table, ``column`` is the name of a column of the gold table."""
    return DECLARATION.format(keys=keys, silver=silver, rest=rest.text(column))


def declared(keys: str, silver: str = "", rest: Rest = FOLD, column: str = "") -> Pipeline:
    """The pipeline with the text of ``text_of``. Raises DeclarationError."""
    return load("/shop/pipelines/shop.yml", text=text_of(keys, silver, rest, column))


def table(keys: str) -> GoldTable:
    return declared(keys).gold["results"]
