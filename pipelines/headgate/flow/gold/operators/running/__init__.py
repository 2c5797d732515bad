"""One result per key over all time: the global window. A result never ends, so no row is late and
no row of the table becomes final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import Key
from headgate.declaration.model import GoldTable
from headgate.declaration.names import Columns
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.flow.gold.operators.fold_operator import FoldOperator

if TYPE_CHECKING:
    from headgate.flow.gold.pairs import Assignment


_NEVER = 1 << 62
"""A time in microseconds that no watermark reaches."""


@dataclass(frozen=True)
class Running:
    """There is nothing to choose."""


class RunningKind(FoldOperator[Running]):
    keys = (
        Key(
            "running",
            "boolean",
            "`true`: one row per key over all time, which follows every event. Such rows are never "
            "final, and no event is too late for them.",
            replaces=("window", "allowed_lateness"),
        ),
    )
    ends = False
    limits = "Each step writes the rows of all keys again: its cost grows with their number."

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Running | None:
        if at.value:
            return Running()
        report.at(at, "can only be true; leave it out for windows")
        return None

    def meaning(self, operator: Running) -> Mapping[str, Any]:
        return {"running": True}

    def columns(self, operator: Running) -> Columns:
        return {}

    def pairs_per_row(self, operator: Running) -> int:
        return 1

    def plan(self, operator: Running) -> Mapping[str, Any]:
        return {"running": True}

    def summary(self, operator: Running) -> tuple[str, str]:
        return "running", "one row per key over all time"

    def final_up_to(
        self, operator: Running, watermark: datetime, lateness: timedelta
    ) -> datetime | None:
        return None

    def assignment(self, operator: Running, declared: GoldTable) -> Assignment:
        from pyspark.sql import functions as F

        from headgate.flow.gold.pairs import Assignment

        never = F.lit(_NEVER)
        return Assignment(lambda rows: rows, never, late_from=never, closed_by=never)


MEMBER = RunningKind()
