"""Measures over the rows before each row, as SQL computes them with OVER."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.expression import parse_scalar
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.measure import parse_measure
from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.model import Derived, Measure
from headgate.declaration.names import Columns
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.sections.silver import checked, derive
from headgate.flow.gold.append.operator import REPLACED, AppendOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SLIDING = (
    *("avg", "bool_and", "bool_or", "count", "count_distinct", "count_if", "max", "min"),
    *("stddev", "stddev_pop", "sum", "var_pop", "variance"),
)
"""The measures that Spark computes over a window that slides from row to row."""
_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True)
class Over:
    """``measures`` over the rows of ``table`` with the same values in ``by`` whose times are at
    most ``range`` before that of each row, with the row itself and others of the same time."""

    table: str
    range: timedelta
    by: tuple[Derived, ...]
    measures: tuple[Measure, ...]


class OverKind(AppendOperator[Over]):
    keys = (
        Key(
            "over",
            "section",
            "For each row of a silver table, measures over the rows of its key in the time before "
            "it, such as a moving mean. In SQL, this is `OVER (PARTITION BY key ORDER BY time "
            "RANGE BETWEEN range PRECEDING AND CURRENT ROW)`: the row itself counts, and rows with "
            "the same time do. Expressions name the columns of the table, such as "
            "`avg(readings.value)`. `columns` can use the rows, the key and the measures.",
            replaces=REPLACED,
            children=(
                Key("table", "name", "The silver table.", required=True),
                Key(
                    "range",
                    "duration",
                    "How far back rows count, this included.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
                Key(
                    "by",
                    "table",
                    "The key: a map from names to expressions, such as "
                    "`{sensor: readings.sensor}`. Without it, all rows count.",
                    entry=Key("NAME", "expression", "An expression over a row."),
                ),
                Key(
                    "measures",
                    "table",
                    f"`count(*)`, or one of {', '.join(SLIDING)}. `filter (where condition)` may "
                    "follow.",
                    required=True,
                    entry=Key("NAME", "expression", "A measure, such as `avg(readings.value)`."),
                ),
            ),
        ),
    )
    limits = "Each step of a table with `over` reads the rows again that are as old as `range`."

    def inputs(self, key: str, at: Field) -> tuple[Field, ...]:
        return (at.value["table"],)

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Over | None:
        section = Section.of(at)
        groups, entries = section.entries("by"), section.entries("measures")
        by = derive(groups, scope, report, parse_scalar)
        found = (_measure(name, field, scope, report) for name, field in entries.items())
        measures = tuple(measure for measure in found if measure is not None)
        named = [(groups, "a key of by"), (entries, "a measure")]
        each_alone = (({name: part[name]}, owner) for part, owner in named for name in part)
        report.check_apart(each_alone, dict.fromkeys(scope, "is the table"))
        table, range_ = section.get("table"), section.get("range")
        if table is None or range_ is None or section.wrong:
            return None
        if len(by) < len(groups) or len(measures) < len(entries):
            return None
        return Over(table.text, range_.value, by, measures)

    def of_results(self, operator: Over) -> Columns:
        keys = {each.name: each.type for each in operator.by}
        return {**keys, **{each.name: each.type for each in operator.measures}}

    def made_of(self, operator: Over) -> Mapping[str, tuple[str, ...]]:
        made: dict[str, tuple[str, ...]] = {e.name: (e.expression,) for e in operator.by}
        for each in operator.measures:
            texts = [argument.text for argument in each.arguments]
            made[each.name] = (*texts, *([each.filter] if each.filter else []))
        return made

    def meaning(self, operator: Over) -> Mapping[str, Any]:
        return {"over": operator}

    def reach(self, operator: Over) -> int:
        return operator.range // _MICRO

    def conditions(self, operator: Over) -> tuple[str, ...]:
        return tuple(each.expression for each in operator.by)

    def plan(self, operator: Over) -> Mapping[str, Any]:
        return {
            "over": {
                "table": operator.table,
                "range": format_duration(operator.range),
                "by": {each.name: each.expression for each in operator.by},
                "measures": {
                    each.name: {
                        "function": each.function,
                        "arguments": [argument.text for argument in each.arguments],
                        "filter": each.filter,
                        "type": str(each.type),
                    }
                    for each in operator.measures
                },
            }
        }

    def summary(self, operator: Over) -> tuple[str, str]:
        by = ", ".join(each.name for each in operator.by) or "all rows"
        measures = ", ".join(each.name for each in operator.measures)
        before = f"{format_duration(operator.range)} before each row of {operator.table}"
        return "over", f"{measures} of {by} in the {before}"

    def results(self, operator: Over, rows: Mapping[str, DataFrame]) -> DataFrame:
        from headgate.flow.gold.operators.over.sliding import slid

        return slid(operator, rows[operator.table])


def _measure(name: str, field: Field, scope: Scope, report: ProblemReport) -> Measure | None:
    measure = checked(field, scope, functools.partial(parse_measure, name), report)
    if measure is not None and measure.function not in SLIDING:
        known = ", ".join(SLIDING)
        report.at(field, f"{measure.function}() does not slide from row to row; there are {known}")
        return None
    return measure


MEMBER = OverKind()
