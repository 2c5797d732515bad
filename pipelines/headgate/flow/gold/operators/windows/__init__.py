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


_MICRO = timedelta(microseconds=1)


def _offset(step: str, example: str = "") -> Key:
    doc = f"Windows start this long after multiples of `{step}` since 1970 UTC: less than `{step}`."
    return Key(
        "offset",
        "duration",
        f"{doc} {example}".strip(),
        default="0 seconds",
        low=timedelta(0),
        high=YEAR,
    )


@dataclass(frozen=True)
class Windows:
    """Windows [start, start + size), a new one every ``every``. They start at ``offset``
    after multiples of ``every`` since 1970 UTC. Tumbling windows have ``every == size``."""

    size: timedelta
    every: timedelta
    offset: timedelta = timedelta(0)


class WindowsKind(FoldOperator[Windows]):
    keys = (
        Key(
            "tumbling",
            "section",
            "Windows that do not overlap. Write their size, such as `tumbling: 1 minute`, or the "
            "keys: `tumbling: {size: 1 day, offset: 6 hours}`.",
            short="size",
            children=(
                Key(
                    "size",
                    "duration",
                    "The length of a window.",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
                _offset("size", "A day with an offset of 6 hours starts at 06:00 UTC."),
            ),
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
                _offset("every"),
            ),
        ),
    )
    is_window = True
    limits = f"A row may be in at most {MAX_WINDOWS_PER_ROW} windows."

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Windows | None:
        section, step = Section.of(at), "size" if key == "tumbling" else "every"
        size, every, offset = (section.get(name) for name in ("size", step, "offset"))
        if size is None or every is None or section.reported("offset"):
            return None
        if size is not every:
            _check_steps(size, every, report)
        if offset is None:
            return Windows(size.value, every.value)
        _check_offset(offset, step, every.value, report)
        return Windows(size.value, every.value, offset.value)

    def meaning(self, operator: Windows) -> Mapping[str, Any]:
        # Without an offset, the key is left out: the digests of tables from before there was one
        # stay as they are.
        offset = {"offset": operator.offset} if operator.offset else {}
        return {"window": {"size": operator.size, "every": operator.every, **offset}}

    def columns(self, operator: Windows) -> Columns:
        return WINDOW_COLUMNS

    def pairs_per_row(self, operator: Windows) -> int:
        return operator.size // operator.every

    def first_after(self, operator: Windows, time: int) -> tuple[int, int]:
        size, every, offset = (
            each // _MICRO for each in (operator.size, operator.every, operator.offset)
        )
        begin = ((time - offset - size) // every + 1) * every + offset
        return begin, begin + size

    def plan(self, operator: Windows) -> Mapping[str, Any]:
        return {
            "window": {
                "shape": _shape(operator),
                "size": format_duration(operator.size),
                "every": format_duration(operator.every),
                "offset": format_duration(operator.offset),
                "windows_per_row": self.pairs_per_row(operator),
            }
        }

    def summary(self, operator: Windows) -> tuple[str, str]:
        shape = _shape(operator)
        line = f"{shape} {format_duration(operator.size)}"
        if shape == "hopping":
            line += f" every {format_duration(operator.every)}, "
            line += f"{self.pairs_per_row(operator)} windows a row"
        if operator.offset:
            line += f", offset {format_duration(operator.offset)}"
        return "window", line

    def assignment(self, operator: Windows, declared: GoldTable) -> Assignment:
        from headgate.flow.gold.operators.windows.assigning import assignment

        return assignment(operator, declared.allowed_lateness, declared.times)


def _check_steps(size: Field, every: Field, report: ProblemReport) -> None:
    if size.value % every.value:
        asked, step = format_duration(size.value), format_duration(every.value)
        message = f"{asked} is not a multiple of every ({step})"
        whole = max(1, round(size.value / every.value)) * every.value
        report.at(size, message, format_duration(whole))
    elif size.value / every.value > MAX_WINDOWS_PER_ROW:
        report.at(every, f"folds each row into more than {MAX_WINDOWS_PER_ROW} windows")


def _check_offset(offset: Field, step: str, every: timedelta, report: ProblemReport) -> None:
    if offset.value >= every:
        asked, most = format_duration(offset.value), format_duration(every)
        message = f"{asked} is not less than {step} ({most}), the time between two starts"
        rest = offset.value % every
        if not rest:
            message += "; without an offset, windows start at the same times: remove the key"
        report.at(offset, message, format_duration(rest) if rest else None)


def _shape(windows: Windows) -> str:
    return "tumbling" if windows.size == windows.every else "hopping"


MEMBER = WindowsKind()
