"""Interval joins: pairs of rows of two silver tables whose times are close to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.spark import as_written
from headgate.declaration.expressions.tokens import canonical
from headgate.declaration.keys.key import YEAR, Key
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.sections.silver import condition
from headgate.flow.gold.append.equalities import (
    SIDES,
    Equalities,
    columns_of,
    equalities,
    planned,
    shown,
    sides,
)
from headgate.flow.gold.append.operator import REPLACED, AppendOperator

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
    on: Equalities
    before: timedelta
    after: timedelta
    kind: JoinKind = "inner"
    where: str | None = None


class JoinKindOperator(AppendOperator[Join]):
    keys = (
        Key(
            "join",
            "section",
            "Pairs of rows of two silver tables, with equal values and with times that are close "
            "to each other. The tables may be of two sources. A pair has the time of its later "
            "row. It is computed once, when the watermark has passed this time by "
            "`allowed_lateness`, and is final. "
            "The rows of a pair are named as their tables: `columns: {user: clicks.user, paid: "
            "purchases.amount}`. A late row of either table goes to the late table of the join.",
            replaces=REPLACED,
            children=(
                *SIDES,
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
                    "right one, and `full` keeps those of both. The time of such a row is the last "
                    "one that a partner may have: that of a left row and `after`, or that of a "
                    "right row and `before`.",
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
        "Each step of a join reads the rows of both tables again that are as old as its bounds. "
        "Give a join with long bounds a `step`."
    )

    def inputs(self, key: str, at: Field) -> tuple[Field, ...]:
        return sides(at)

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Join | None:
        section = Section.of(at)
        left, right = section.get("left"), section.get("right")
        within = section.section("within")
        where = condition(section.get("where"), scope, report)
        if within is not None and not within.fields and not within.wrong:
            report.at(within, "needs 'before', 'after' or both, such as `within: 1 hour`")
        if left is None or right is None:
            return None
        on = equalities(section, left.text, right.text, scope, report)
        if within is None or within.wrong or section.wrong or left.text == right.text:
            return None
        bounds = (within.get(each) for each in ("before", "after"))
        before, after = (timedelta(0) if each is None else each.value for each in bounds)
        kind = section.text("kind", "inner")
        return Join(left.text, right.text, on, before, after, kind, where)  # type: ignore[arg-type]

    def meaning(self, operator: Join) -> Mapping[str, Any]:
        where = operator.where and canonical(operator.where)
        return {"join": replace(operator, where=where)}

    def reach(self, operator: Join) -> int:
        # An unmatched row is decided when its last possible partner would be, and its first one
        # may be earlier than the row.
        return (operator.before + operator.after) // _MICRO

    def conditions(self, operator: Join) -> tuple[str, ...]:
        where = () if operator.where is None else (operator.where,)
        return (*columns_of(operator.on, operator.left, operator.right), *where)

    def plan(self, operator: Join) -> Mapping[str, Any]:
        return {
            "join": {
                **planned(operator.left, operator.right, operator.on),
                "before": format_duration(operator.before),
                "after": format_duration(operator.after),
                "kind": operator.kind,
                "where": operator.where,
            }
        }

    def summary(self, operator: Join) -> tuple[str, str]:
        bounds = [
            f"{format_duration(each)} {side}"
            for each, side in ((operator.before, "before"), (operator.after, "after"))
            if each
        ]
        close = f"at most {' or '.join(bounds)}" if bounds else "at the time of"
        line = f"{operator.kind}, {operator.right} {close} {operator.left}, on {shown(operator.on)}"
        return "join", line

    def details(self, operator: Join) -> tuple[tuple[str, str], ...]:
        return () if operator.where is None else (("where", as_written(operator.where)),)

    def results(self, operator: Join, rows: Mapping[str, DataFrame]) -> DataFrame:
        from headgate.flow.gold.operators.join.pairing import joined

        return joined(operator, rows[operator.left], rows[operator.right])


MEMBER = JoinKindOperator()
