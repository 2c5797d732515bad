"""Count windows: every N rows of a key in a partition of its source, in the order of the log. No
row is late, and a window is final when it is full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import Key
from headgate.declaration.model import GoldTable
from headgate.declaration.names import Columns
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.types import BIGINT, INT
from headgate.flow.gold.operators.fold_operator import FoldOperator

if TYPE_CHECKING:
    from headgate.flow.gold.aggregator import Aggregator
    from headgate.flow.gold.pairs import Assignment

_MOST = 1_000_000_000


@dataclass(frozen=True)
class CountWindows:
    """``size`` is the number of rows of a window that is full."""

    size: int


class CountKind(FoldOperator[CountWindows]):
    keys = (
        Key(
            "count",
            "section",
            "Every `size` rows of a key in a partition, in the order of the log. Write the size, "
            "such as `count: 100`. A row belongs to one window, whatever its time is.",
            short="size",
            replaces=("time",),
            replaces_above=("allowed_lateness", "late"),
            children=(
                Key(
                    "size",
                    "integer",
                    "The number of rows of a window (Flink: countWindow).",
                    required=True,
                    low=1,
                    high=_MOST,
                ),
            ),
        ),
    )
    is_window = True
    end_varies = True
    is_timed = False
    rolls_up = False
    limits = "The events of one key are in one task of Spark, so `salt` does not help a hot key."

    def build(
        self, key: str, at: Field, scope: Scope, report: ProblemReport
    ) -> CountWindows | None:
        size = Section.of(at).get("size")
        return None if size is None else CountWindows(size.value)

    def meaning(self, operator: CountWindows) -> Mapping[str, Any]:
        return {"window": {"count": operator.size}}

    def columns(self, operator: CountWindows) -> Columns:
        return {
            "window_partition": INT,
            "window_offset": BIGINT,
            "window_item": INT,
            "window_rows": BIGINT,
        }

    def identity(self, operator: CountWindows) -> tuple[str, ...]:
        # The place of its first row, and not a number: after a window is full, nothing has to
        # remember how many there were.
        return ("window_partition", "window_offset", "window_item")

    def pairs_per_row(self, operator: CountWindows) -> int:
        return 1

    def plan(self, operator: CountWindows) -> Mapping[str, Any]:
        return {"window": {"shape": "count", "size": operator.size, "windows_per_row": 1}}

    def summary(self, operator: CountWindows) -> tuple[str, str]:
        rows = "row" if operator.size == 1 else "rows"
        return "window", f"every {operator.size:,} {rows} of a key in a partition"

    def final_up_to(
        self, operator: CountWindows, watermark: datetime, lateness: timedelta
    ) -> datetime | None:
        return None

    def assignment(self, operator: CountWindows, declared: GoldTable) -> Assignment:
        from headgate.flow.gold.operators.count.counting import assignment

        return assignment(operator.size)

    def aggregator(self, declared: GoldTable, assignment: Assignment) -> Aggregator:
        from headgate.flow.gold.operators.count.counting import CountAggregator

        return CountAggregator(declared, assignment.end, declared.operator.size)


MEMBER = CountKind()
