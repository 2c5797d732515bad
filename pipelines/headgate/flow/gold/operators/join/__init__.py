"""Interval joins: pairs of rows of two silver tables whose times are close to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import YEAR, Key
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, Partial, ProblemReport, Section
from headgate.declaration.sections.silver import condition
from headgate.declaration.types import DataType, Struct
from headgate.flow.gold.append.operator import AppendOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JoinKind = Literal["inner", "left", "full"]
_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True)
class Join:
    """Pairs of rows of ``left`` and ``right`` with equal values in ``on``, pairs of columns. The
    right row is at most ``before`` earlier and at most ``after`` later than the left one."""

    left: str
    right: str
    on: tuple[tuple[str, str], ...]
    before: timedelta
    after: timedelta
    kind: JoinKind = "inner"
    where: str | None = None


class JoinKindOperator(AppendOperator[Join]):
    keys = (
        Key(
            "join",
            "section",
            "Pairs of rows of two silver tables of one source, with equal values and with times "
            "that are close to each other. A pair has the time of its later row, and is computed "
            "once, when no row that is on time can be earlier. The rows of a pair are named as "
            "their tables: `columns: {user: clicks.user, paid: purchases.amount}`. A late row of "
            "either table waits in the table's late table.",
            replaces=("from", "window", "where", "by", "measures", "salt"),
            children=(
                Key("left", "name", "A silver table.", required=True),
                Key("right", "name", "Another silver table of the same source.", required=True),
                Key(
                    "on",
                    "groups",
                    "What is equal in both rows: columns that both tables have, or a map from "
                    "columns of the left one to columns of the right one. A row without a value "
                    "has no partner.",
                    required=True,
                ),
                Key(
                    "within",
                    "section",
                    "How far the time of the right row may be from that of the left one. Write "
                    "`within: 1 hour` for the hour after it.",
                    required=True,
                    short="after",
                    children=(
                        Key(
                            "after",
                            "duration",
                            "The right row is at most this much later, this included.",
                            default="0 seconds",
                            low=timedelta(0),
                            high=YEAR,
                        ),
                        Key(
                            "before",
                            "duration",
                            "The right row is at most this much earlier, this included.",
                            default="0 seconds",
                            low=timedelta(0),
                            high=YEAR,
                        ),
                    ),
                ),
                Key(
                    "kind",
                    "choice",
                    "`left` keeps rows of the left table that have no partner, with nulls for the "
                    "right one, and `full` keeps those of both. Such a row is computed when no "
                    "partner that is on time can come any more, and has this time.",
                    default="inner",
                    choices=get_args(JoinKind),
                ),
                Key(
                    "where",
                    "expression",
                    "A further condition over both rows of a pair, such as "
                    "`purchases.amount > clicks.price`.",
                ),
            ),
        ),
    )
    limits = (
        "Each step reads the rows of both tables again that are as old as the bounds: give tables "
        "with long bounds a `step`."
    )

    def inputs(self, key: str, at: Field) -> tuple[Field, ...]:
        section = Section.of(at)
        found = (section.get(side) for side in ("left", "right"))
        return tuple(field for field in found if field is not None)

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Join | None:
        section = Section.of(at)
        left, right = section.get("left"), section.get("right")
        within = section.section("within")
        where = condition(section.get("where"), scope, report)
        if left is None or right is None or within is None or within.wrong or section.wrong:
            return None
        on = _equalities(section, left.text, right.text, scope, report)
        if left.text not in scope or right.text not in scope or left.text == right.text:
            return None
        bounds = (within.get(each) for each in ("before", "after"))
        before, after = (timedelta(0) if each is None else each.value for each in bounds)
        kind = section.text("kind", "inner")
        return Join(left.text, right.text, on, before, after, kind, where)  # type: ignore[arg-type]

    def meaning(self, operator: Join) -> Mapping[str, Any]:
        return {"join": operator}

    def reach(self, operator: Join) -> int:
        # An unmatched row is decided when its last possible partner would be, and its first one
        # may be earlier than the row.
        return (operator.before + operator.after) // _MICRO

    def conditions(self, operator: Join) -> tuple[str, ...]:
        sides = [(f"{operator.left}.{a}", f"{operator.right}.{b}") for a, b in operator.on]
        where = () if operator.where is None else (operator.where,)
        return (*(column for side in sides for column in side), *where)

    def plan(self, operator: Join) -> Mapping[str, Any]:
        return {
            "join": {
                "left": operator.left,
                "right": operator.right,
                "on": [{"left": left, "right": right} for left, right in operator.on],
                "before": format_duration(operator.before),
                "after": format_duration(operator.after),
                "kind": operator.kind,
                "where": operator.where,
            }
        }

    def summary(self, operator: Join) -> tuple[str, str]:
        on = ", ".join(a if a == b else f"{a} = {b}" for a, b in operator.on)
        bounds = [
            f"{format_duration(each)} {side}"
            for each, side in ((operator.before, "before"), (operator.after, "after"))
            if each
        ]
        close = " or ".join(bounds) or "at the same time"
        line = f"{operator.kind}, {operator.right} {close} {operator.left}, on {on}"
        return "join", line

    def results(self, operator: Join, rows: Mapping[str, DataFrame]) -> DataFrame:
        from headgate.flow.gold.operators.join.pairing import joined

        return joined(operator, rows[operator.left], rows[operator.right])


def _equalities(
    section: Section, left: str, right: str, scope: Scope, report: ProblemReport
) -> tuple[tuple[str, str], ...]:
    """The pairs of columns of ``on``. Reports columns that are not there, or cannot be equal."""
    field = section.get("on")
    if field is None:
        return ()
    if isinstance(field.value, dict):
        named = [(each, name, each.text) for name, each in field.value.items() if each.value]
    else:
        named = [(each, each.text, each.text) for each in field.items]
    found = []
    for at, *columns in named:
        types = [
            _column(at, table, column, scope, report)
            for table, column in zip((left, right), columns, strict=True)
        ]
        if None not in types and types[0] != types[1]:
            report.at(
                at,
                f"{left}.{columns[0]} is {types[0]}, and {right}.{columns[1]} is "
                f"{types[1]}; cast one of them in its silver table",
            )
        found.append((columns[0], columns[1]))
    if not found:
        report.at(field, "names no column")
    return tuple(found)


def _column(
    at: Field, table: str, name: str, scope: Scope, report: ProblemReport
) -> DataType | None:
    """The type of a column of an input; None after reporting that it is not there."""
    type_ = scope.get(table) if not isinstance(scope, Partial) else None
    if not isinstance(type_, Struct):
        return None
    columns = dict(type_.fields)
    if name not in columns:
        report.at(at, f"the silver table {table!r} has no column {name!r}")
    return columns.get(name)


MEMBER = JoinKindOperator()
