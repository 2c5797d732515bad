"""A table as questions see it, and the facts about it that charts need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.contracts.operator import columns_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable
from headgate.declaration.types import is_number, is_time
from headgate.insight.dashboard.errors import BadQuestionError
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.reading.engine import Row
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.reading.versions import ReleasedVersion

Across = Literal["sum", "min", "max"]

_OTHERS: dict[str, Across] = {"min": "min", "max": "max"}


@dataclass(frozen=True)
class Figure:
    """A number of each row. ``across`` combines the rows of several keys into one; None if that
    has no meaning, as for an average."""

    name: str
    type: str
    across: Across | None


@dataclass(frozen=True)
class Facts:
    """``begin`` and ``end`` are the columns of a result's bounds; None if a key has one result.
    ``counter`` is a figure that counts rows, or None."""

    table: str
    keys: tuple[str, ...]
    figures: tuple[Figure, ...]
    begin: str | None
    end: str | None
    counter: str | None
    columns: tuple[str, ...]

    @property
    def bounds(self) -> tuple[str, ...]:
        return tuple(column for column in (self.begin, self.end) if column)

    def figure(self, name: str | None) -> Figure:
        """The figure of a name, or the first one. Raises BadQuestionError."""
        for figure in self.figures:
            if name in (None, figure.name):
                return figure
        known = ", ".join(figure.name for figure in self.figures) or "none"
        raise BadQuestionError(
            f"{self.table} has no number called {name!r}", remedy=f"its numbers: {known}"
        )

    def key(self, name: str) -> str:
        """Raises BadQuestionError if ``name`` is no key."""
        if name in self.keys:
            return name
        known = ", ".join(self.keys) or "none"
        raise BadQuestionError(f"{self.table} has no key {name!r}", remedy=f"its keys: {known}")


def facts(table: GoldTable) -> Facts:
    bounds = [name for name, type_ in columns_of(table).items() if is_time(type_)]
    measures = [Figure(m.name, str(m.type), _across(m.function)) for m in table.measures]
    derived = [Figure(c.name, str(c.type), None) for c in table.columns]
    numbers = {name for name, type_ in table.types.items() if is_number(type_)}
    return Facts(
        table=table.name,
        keys=tuple(key.name for key in table.by),
        figures=tuple(f for f in (*measures, *derived) if f.name in numbers),
        begin=bounds[0] if len(bounds) > 1 else None,
        end=bounds[1] if len(bounds) > 1 else None,
        counter=table.counter,
        columns=(*columns_of(table), *table.types),
    )


def _across(function: str) -> Across | None:
    return "sum" if MEASURES[function].adds_up else _OTHERS.get(function)


@dataclass(frozen=True, eq=False)
class TableView:
    """One version of a table, which queries call ``called``."""

    called: ClassVar[str] = "t"
    reader: Reader
    version: ReleasedVersion

    @property
    def types(self) -> dict[str, str]:
        """DuckDB's types of the columns."""
        return self.reader.types(self.version)

    def ask(self, sql: str, parameters: Sequence[object], columns: Sequence[str]) -> Sequence[Row]:
        """The rows that a query returns, which reads these columns. Raises TooMuchError,
        BadQuestionError, ChangedTableError."""
        return self.reader.ask(sql, parameters, **{self.called: (self.version, columns)}).rows


@dataclass(frozen=True, eq=False)
class GoldView(TableView):
    called: ClassVar[str] = "gold"
    shown: Shown
    table: GoldTable

    @staticmethod
    def of(reader: Reader, shown: Shown, name: str) -> GoldView:
        """The newest version. Raises NotFoundError if there is none."""
        table = shown.gold(name)
        return GoldView(reader, shown.existing(GOLD.path(name)), shown, table)

    @cached_property
    def facts(self) -> Facts:
        return facts(self.table)
