"""Joins as of a time: each row with the last row of another table at or before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
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

_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True)
class AsOf:
    """Each row of ``left`` with the last row of ``right`` that has equal values in ``on`` and is at
    or before it, at most ``within`` earlier."""

    left: str
    right: str
    on: Equalities
    within: timedelta


class AsOfKind(AppendOperator[AsOf]):
    keys = (
        Key(
            "as_of",
            "section",
            "Each row of a silver table with the last row of another one at or before its time, "
            "such as an order with the exchange rate that was valid then (DuckDB: ASOF JOIN). "
            "There is one row for each row of the left table; without a row of the right one, that "
            "is null. Of rows with the same time, the last one of the log counts.",
            replaces=REPLACED,
            children=(
                *SIDES,
                Key(
                    "within",
                    "duration",
                    "The right row is at most this much earlier, this included. An older one does "
                    "not count.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
            ),
        ),
    )
    limits = (
        "Each step of a table with `as_of` reads the rows of the right table again that are as old "
        "as `within`. Send a rate again from time to time, and keep `within` short."
    )

    def inputs(self, key: str, at: Field) -> tuple[Field, ...]:
        return sides(at)

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> AsOf | None:
        section = Section.of(at)
        left, right, within = (section.get(name) for name in ("left", "right", "within"))
        if left is None or right is None:
            return None
        on = equalities(section, left.text, right.text, scope, report)
        if within is None or section.wrong or left.text == right.text:
            return None
        return AsOf(left.text, right.text, on, within.value)

    def meaning(self, operator: AsOf) -> Mapping[str, Any]:
        return {"as_of": operator}

    def reach(self, operator: AsOf) -> int:
        return operator.within // _MICRO

    def conditions(self, operator: AsOf) -> tuple[str, ...]:
        return columns_of(operator.on, operator.left, operator.right)

    def plan(self, operator: AsOf) -> Mapping[str, Any]:
        return {
            "as_of": {
                **planned(operator.left, operator.right, operator.on),
                "within": format_duration(operator.within),
            }
        }

    def summary(self, operator: AsOf) -> tuple[str, str]:
        last = f"the last of {operator.right} in {format_duration(operator.within)}"
        return "as of", f"{operator.left} with {last}, on {shown(operator.on)}"

    def results(self, operator: AsOf, rows: Mapping[str, DataFrame]) -> DataFrame:
        from headgate.flow.gold.operators.as_of.matching import matched

        return matched(operator, rows[operator.left], rows[operator.right])


MEMBER = AsOfKind()
