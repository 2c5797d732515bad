"""The facts about a gold table that charts need, from its declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.contracts.operator import columns_of
from headgate.declaration.model import GoldTable
from headgate.declaration.types import is_number, is_time
from headgate.insight.dashboard.errors import BadQuestionError

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
