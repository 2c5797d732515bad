"""Tumbling and hopping windows. Both are one operator: tumbling windows hop by their size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.model import GoldTable
from headgate.declaration.names import WINDOW_COLUMNS, Columns
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.flow.gold.operators.fold_operator import FoldOperator

if TYPE_CHECKING:
    from headgate.flow.gold.pairs import Assignment

MAX_WINDOWS_PER_ROW = 1_000
"""A row is folded into ``size / every`` windows. More than this is taken for a mistake in a
unit."""


@dataclass(frozen=True)
class Windows:
    """Event-time windows [start, start + size), a new one every ``every``, aligned to the Unix
    epoch in UTC. Tumbling windows have ``every == size``."""

    size: timedelta
    every: timedelta


class WindowsKind(FoldOperator[Windows]):
    keys = (
        Key(
            "tumbling",
            "duration",
            "Windows of this size that do not overlap.",
            low=INSTANT,
            high=YEAR,
        ),
        Key(
            "hopping",
            "section",
            "Windows that overlap (Flink, Spark: sliding).",
            children=(
                Key(
                    "size",
                    "duration",
                    "The length of a window: a multiple of `every`.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
                Key(
                    "every",
                    "duration",
                    "The time between the starts of two windows.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
            ),
        ),
    )
    is_window = True
    limits = f"A row may be in at most {MAX_WINDOWS_PER_ROW} windows."

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Windows | None:
        if key == "tumbling":
            return Windows(at.value, at.value)
        hopping = Section.of(at)
        size, every = hopping.get("size"), hopping.get("every")
        if size is None or every is None:
            return None
        _check_steps(size, every, report)
        return Windows(size.value, every.value)

    def meaning(self, operator: Windows) -> Mapping[str, Any]:
        return {"window": operator}

    def columns(self, operator: Windows) -> Columns:
        return WINDOW_COLUMNS

    def pairs_per_row(self, operator: Windows) -> int:
        return operator.size // operator.every

    def spacing(self, operator: Windows) -> tuple[timedelta, timedelta]:
        return operator.size, operator.every

    def plan(self, operator: Windows) -> Mapping[str, Any]:
        return {
            "window": {
                "shape": _shape(operator),
                "size": format_duration(operator.size),
                "every": format_duration(operator.every),
                "windows_per_row": self.pairs_per_row(operator),
            }
        }

    def summary(self, operator: Windows) -> tuple[str, str]:
        shape = _shape(operator)
        line = f"{shape} {format_duration(operator.size)}"
        if shape == "hopping":
            line += f" every {format_duration(operator.every)}, "
            line += f"{self.pairs_per_row(operator)} windows a row"
        return "window", line

    def assignment(self, operator: Windows, declared: GoldTable) -> Assignment:
        from headgate.flow.gold.operators.windows.assigning import assignment

        return assignment(operator, declared.allowed_lateness)


def _check_steps(size: Field, every: Field, report: ProblemReport) -> None:
    if size.value % every.value:
        asked, step = format_duration(size.value), format_duration(every.value)
        message = f"{asked} is not a multiple of every ({step})"
        whole = max(1, round(size.value / every.value)) * every.value
        report.at(size, message, format_duration(whole))
    elif size.value / every.value > MAX_WINDOWS_PER_ROW:
        report.at(every, f"folds each row into more than {MAX_WINDOWS_PER_ROW} windows")


def _shape(windows: Windows) -> str:
    return "tumbling" if windows.size == windows.every else "hopping"


MEMBER = WindowsKind()
