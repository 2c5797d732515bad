"""The two sides of a join in a declaration: its tables, and what is equal in their rows."""

from __future__ import annotations

from typing import Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.keys.key import Key
from headgate.declaration.names import nearest
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.types import DataType, Struct, is_nested

Equalities = tuple[tuple[str, str], ...]
"""Pairs of a column of the left table and one of the right table."""

SIDES = (
    Key("left", "name", "A silver table.", required=True),
    Key("right", "name", "Another silver table of the same source.", required=True),
    Key(
        "on",
        "pairs",
        "What is equal in both rows: columns that both tables have, or a map from columns of the "
        "left one to columns of the right one. A row without a value has no partner.",
        required=True,
    ),
)


def sides(at: Field) -> tuple[Field, ...]:
    """The fields that name the tables, of the section of a join."""
    return at.value["left"], at.value["right"]


def columns_of(on: Equalities, left: str, right: str) -> tuple[str, ...]:
    """The compared columns, as expressions."""
    return tuple(name for a, b in on for name in (f"{left}.{a}", f"{right}.{b}"))


def planned(left: str, right: str, on: Equalities) -> dict[str, Any]:
    """The two sides as a part of a plan."""
    pairs = [{"left": one, "right": other} for one, other in on]
    return {"left": left, "right": right, "on": pairs}


def shown(on: Equalities) -> str:
    return ", ".join(a if a == b else f"{a} = {b}" for a, b in on)


def equalities(
    section: Section, left: str, right: str, scope: Scope, report: ProblemReport
) -> Equalities:
    """The pairs of columns of ``on``. Reports columns that are not there, or cannot be equal."""
    field = section.get("on")
    if field is None:
        return ()
    if isinstance(field.value, dict):
        named = [(each, name, each.text) for name, each in field.value.items() if each.value]
    else:
        named = [(each, each.text, each.text) for each in field.items]
    if not named and not field.value:
        report.at(field, "is empty; name what is equal in both rows, such as [id]")
    found = []
    for at, *columns in named:
        one, other = (
            _column(at, table, column, scope, report)
            for table, column in zip((left, right), columns, strict=True)
        )
        if one is not None and other is not None and one != other:
            report.at(
                at,
                f"{left}.{columns[0]} is {with_article(one)}, and {right}.{columns[1]} is "
                f"{with_article(other)}; cast one of them in its silver table",
            )
        found.append((columns[0], columns[1]))
    return tuple(found)


def _column(
    at: Field, table: str, name: str, scope: Scope, report: ProblemReport
) -> DataType | None:
    """The type of a column of an input; None after reporting that it cannot be compared."""
    type_ = scope.get(table)
    if not isinstance(type_, Struct):
        return None
    columns = dict(type_.fields)
    if name not in columns:
        bare = name.removeprefix(f"{table}.")
        guess = bare if bare in columns else nearest(bare, columns)
        report.at(at, f"the silver table {table!r} has no column {name!r}", guess)
    elif is_nested(columns[name]):
        kind = with_article(columns[name])
        report.at(at, f"{table}.{name} is {kind}; take a part of it in its silver table")
        return None
    return columns.get(name)
