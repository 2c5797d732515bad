"""Late rows, quarantined and rejected records: how many, when, why, and the records themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.declaration.names import REPLAYED, SILVER_IDENTITY, WARNINGS
from headgate.insight.dashboard.questions.cells import cells
from headgate.insight.dashboard.questions.rows import PageQuestion, page_of
from headgate.insight.dashboard.questions.sql import ALL, Condition
from headgate.insight.dashboard.questions.view import TableView
from headgate.insight.quality.findings import masked
from headgate.insight.querying.sandbox import quoted

# Headgate's own columns, the most important first. They are not masked: positions, times, reasons
# and rules have no text that a producer sent. The lists differ, because a silver table may have
# columns with the same names as quarantine.
QUARANTINE_PLAIN = (
    *("ingested_at", "reason", "column", "table", "event_time", "partition", "offset"),
)
REJECTED_PLAIN = ("ingested_at", "rules", "suite", "event_time", "partition", "offset", "item")
DETAIL = "detail"
"""Says what is wrong with a record. What the producer sent is after a colon, or in quotes."""
_SENT = re.compile(r": |['\"]")
LATE_PLAIN = (
    *("late_seconds", "reason", "replayed", "_event_time", "_clock"),
    *SILVER_IDENTITY,
    WARNINGS,
)
_POINTS = 60
_MOST_REASONS = 6  # lines of a chart, which has one more for all others
_NICE = (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 86_400, 604_800)


@dataclass(frozen=True)
class RefusedQuestion(PageQuestion):
    """``reason`` selects the rows with one reason; None selects all rows. Values are masked unless
    ``show_values``."""

    reason: str | None = None
    show_values: bool = False


def quarantined(view: TableView, question: RefusedQuestion) -> dict[str, Any]:
    """Quarantined records, the newest first, by the time of their arrival."""
    order = 'ingested_at DESC, "partition", "offset"'
    return _page(view, question, _Table("ingested_at", order, QUARANTINE_PLAIN))


def rejected(view: TableView, question: RefusedQuestion) -> dict[str, Any]:
    """Records that rules have rejected, the newest first, by the time of their arrival. The reasons
    are rules; a record may break several."""
    order = 'ingested_at DESC, "partition", "offset", item'
    ids = "list_transform(rules, lambda rule: rule.id)"
    return _page(view, question, _Table("ingested_at", order, REJECTED_PLAIN, "rules", ids))


def late_rows(
    view: TableView, question: RefusedQuestion, bounds: Sequence[str], identity: Sequence[str]
) -> dict[str, Any]:
    """Late rows by the window that they missed, or else by their event time, the newest first.
    ``bounds`` are the columns of that window, ``identity`` those that identify a late row."""
    time = next(iter(bounds), "_event_time")
    order = f"{quoted(time)} DESC, {', '.join(map(quoted, identity))}"
    own = (name for name in identity if name not in (*bounds, *SILVER_IDENTITY))
    answer = _page(view, question, _Table(time, order, (*bounds, *own, *LATE_PLAIN)))
    (seconds,) = view.ask(
        f"SELECT quantile_cont(late_seconds, [0.5, 0.95, 1.0]), count({REPLAYED}) FROM t",
        (),
        ("late_seconds", REPLAYED),
    )
    median, most, worst = seconds[0] or (None, None, None)
    lateness = {"median": median, "p95": most, "max": worst}
    return answer | {"seconds": lateness, "replayed": seconds[1]}


@dataclass(frozen=True)
class _Table:
    """``time`` is the column of the chart, ``plain`` are those that are never masked. ``why`` is
    the column with the reasons of a row, ``reasons`` an SQL expression over it that gives their
    list."""

    time: str
    order: str
    plain: tuple[str, ...]
    why: str = "reason"
    reasons: str = "[coalesce(reason, '')]"

    @property
    def each(self) -> str:
        """A query with a row for each reason of a row."""
        return f"(SELECT *, unnest({self.reasons}) AS _reason FROM t)"


def _page(view: TableView, question: RefusedQuestion, table: _Table) -> dict[str, Any]:
    names = view.version.schema.names
    own = [name for name in table.plain if name in names]
    columns = (*own, *(name for name in names if name not in own))
    chosen = ALL
    if question.reason is not None:
        chosen = Condition(f"list_contains({table.reasons}, ?)", (question.reason,))
    reasons = view.ask(
        f"SELECT _reason, count(*) FROM {table.each} GROUP BY 1 ORDER BY 2 DESC, 1",
        (),
        (table.why,),
    )
    total = view.version.rows
    if question.reason is not None:
        total = next((n for reason, n in reasons if reason == question.reason), 0)
    page, found = page_of(view, question, columns, chosen, table.order, total)
    plain = columns if question.show_values else table.plain
    return {
        "reasons": [{"reason": reason, "count": n} for reason, n in reasons],
        "over_time": _over_time(view, table, [reason for reason, _ in reasons]),
        "columns": columns,
        **page,
        "masked": not question.show_values,
        "cells": [_shown(columns, plain, row) for row in found],
    }


def _shown(columns: Sequence[str], plain: Sequence[str], row: Sequence[object]) -> list[str | None]:
    """The texts of a row, masked unless their column is ``plain``."""
    return [
        text if text is None or name in plain else _masked(name, text)
        for name, text in zip(columns, cells(row), strict=True)
    ]


def _masked(name: str, text: str) -> str:
    """The words that say what is wrong are Headgate's own."""
    begin = 0
    if name == DETAIL:
        found = _SENT.search(text)
        begin = found.start() if found else len(text)
    return text[:begin] + masked(text[begin:])


def _over_time(view: TableView, table: _Table, reasons: Sequence[str]) -> dict[str, Any]:
    """Counts by reason in intervals of ``step`` seconds, at most about ``_POINTS`` intervals. All
    reasons after the first ones have one line."""
    at = f"epoch_us({quoted(table.time)})"
    ((first, last),) = view.ask(f"SELECT min({at}), max({at}) FROM t", (), (table.time,))
    if first is None:
        return {"t": [], "series": [], "step": 0}
    span = (last - first) / 1e6
    step = next((s for s in _NICE if span / s < _POINTS), max(_NICE[-1], int(span // _POINTS) + 1))
    origin = first // (step * 1_000_000) * step * 1_000_000
    rows = view.ask(
        f"SELECT _reason, CAST(({at} - ?) // ? AS BIGINT), count(*) FROM {table.each} "
        f"WHERE {at} IS NOT NULL GROUP BY 1, 2",
        (origin, step * 1_000_000),
        (table.time, table.why),
    )
    number = max(point for _, point, _ in rows) + 1
    labels = [reason or "none" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        labels.append("others")
    counts = [[0] * number for _ in labels]
    for reason, point, count in rows:
        counts[min(reasons.index(reason), _MOST_REASONS)][point] += count
    return {
        "t": [origin / 1e6 + place * step for place in range(number)],
        "series": [{"label": n, "v": v} for n, v in zip(labels, counts, strict=True)],
        "step": step,
    }
