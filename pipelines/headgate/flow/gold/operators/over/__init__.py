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
MOST_ROWS = 1_000
_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True)
class Over:
    """``measures`` over the rows of ``table`` with the same values in ``by`` whose times are at
    most ``within`` before that of each row, with the row itself and others of the same time.

    With ``rows``, over at most so many of them, the last ones before the row, and the row itself.
    Their order is that of event time and position, and rows after the row do not count, also if
    they have the same time.
    """

    table: str
    within: timedelta
    by: tuple[Derived, ...]
    measures: tuple[Measure, ...]
    rows: int | None = None


class OverKind(AppendOperator[Over]):
    keys = (
        Key(
            "over",
            "section",
            "For each row of a silver table, measures over the rows of its key in the time before "
            "it, such as a moving mean, or over the last rows before it. In SQL, this is `OVER "
            "(PARTITION BY key ORDER BY time RANGE BETWEEN range PRECEDING AND CURRENT ROW)`, or "
            "`ROWS BETWEEN rows PRECEDING AND CURRENT ROW`: the row itself counts. With `range`, "
            "rows with the same time do, too. Expressions name the columns of the table, such as "
            "`avg(readings.value)`. `columns` can use the rows, the key and the measures.",
            replaces=REPLACED,
            one_of=("range", "rows"),
            children=(
                Key("table", "name", "The silver table.", required=True),
                Key(
                    "range",
                    "duration",
                    "How far back rows count, this included.",
                    low=INSTANT,
                    high=YEAR,
                ),
                Key(
                    "rows",
                    "integer",
                    "How many rows before the row count, beside the row itself: with 9, a mean is "
                    "that of ten rows. They are the last ones in the order of event time, then "
                    "partition and offset. Needs `within`.",
                    low=1,
                    high=MOST_ROWS,
                ),
                Key(
                    "within",
                    "duration",
                    "Only with `rows`: of these rows, those count that are at most this much "
                    "earlier, this included. There may be fewer of them.",
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
    limits = (
        "Each step of a table with `over` reads the rows again that are as old as `range` or "
        "`within`. Its time grows with the number of rows that count for each of them."
    )

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
        table, rows, within = section.get("table"), section.get("rows"), _within(section, report)
        if table is None or within is None or section.wrong:
            return None
        if len(by) < len(groups) or len(measures) < len(entries):
            return None
        most = None if rows is None else rows.value
        return Over(table.text, within.value, by, measures, most)

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
        return {
            "over": {
                "table": operator.table,
                **_frame(operator),
                "by": operator.by,
                "measures": operator.measures,
            }
        }

    def reach(self, operator: Over) -> int:
        return operator.within // _MICRO

    def conditions(self, operator: Over) -> tuple[str, ...]:
        return tuple(each.expression for each in operator.by)

    def plan(self, operator: Over) -> Mapping[str, Any]:
        return {
            "over": {
                "table": operator.table,
                **{
                    name: format_duration(each) if isinstance(each, timedelta) else each
                    for name, each in _frame(operator).items()
                },
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
        each, within = f"before each row of {operator.table}", format_duration(operator.within)
        if operator.rows is None:
            return "over", f"{measures} of {by} in the {within} {each}"
        last = "row" if operator.rows == 1 else f"{operator.rows:,} rows"
        return "over", f"{measures} of {by} in the last {last} {each}, within {within}"

    def results(self, operator: Over, rows: Mapping[str, DataFrame]) -> DataFrame:
        from headgate.flow.gold.operators.over.sliding import slid

        return slid(operator, rows[operator.table])


def _frame(over: Over) -> Mapping[str, Any]:
    """Which rows count, as the keys say it."""
    if over.rows is None:
        return {"range": over.within}
    return {"rows": over.rows, "within": over.within}


def _within(section: Section, report: ProblemReport) -> Field | None:
    """How far back rows count. Reports ``within`` where it is missing or has no meaning."""
    rows, range_, within = (section.get(name) for name in ("rows", "range", "within"))
    if rows is None:
        if within is not None and range_ is not None:
            report.at(within, "has no meaning with 'range'; remove it")
        return range_
    if range_ is not None:
        return None
    if within is None and not section.reported("within"):
        report.at(
            rows,
            "needs 'within', such as `within: 1 day`: how old these rows may be, because each "
            "step reads the rows of silver again that may count",
        )
    return within


def _measure(name: str, field: Field, scope: Scope, report: ProblemReport) -> Measure | None:
    measure = checked(field, scope, functools.partial(parse_measure, name), report)
    if measure is not None and measure.function not in SLIDING:
        known = ", ".join(SLIDING)
        report.at(field, f"{measure.function}() does not slide from row to row; there are {known}")
        return None
    return measure


MEMBER = OverKind()
