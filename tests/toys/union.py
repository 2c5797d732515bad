"""A toy append operator: the rows of several silver tables, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import Key
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.flow.gold.append.operator import REPLACED, AppendOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Union:
    tables: tuple[str, ...]


class UnionKind(AppendOperator[Union]):
    keys = (
        Key(
            "union",
            "names",
            "The silver tables.",
            replaces=REPLACED,
        ),
    )

    def inputs(self, key: str, at: Field) -> tuple[Field, ...]:
        return at.items

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Union | None:
        if not at.items:
            report.at(at, "names no table")
            return None
        return Union(tuple(each.text for each in at.items))

    def meaning(self, operator: Union) -> Mapping[str, Any]:
        return {"union": operator.tables}

    def plan(self, operator: Union) -> Mapping[str, Any]:
        return {"union": list(operator.tables)}

    def summary(self, operator: Union) -> tuple[str, str]:
        return "union", ", ".join(operator.tables)

    def results(self, operator: Union, rows: Mapping[str, DataFrame]) -> DataFrame:

        def appended(above: DataFrame, below: DataFrame) -> DataFrame:
            return above.unionByName(below, allowMissingColumns=True)

        return reduce(appended, (rows[name] for name in operator.tables))


MEMBER = UnionKind()
