"""Figures by window, reduced to about as many points as a screen has pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.declaration.kinds import LATE
from headgate.declaration.names import REPLAYED
from headgate.insight.dashboard.questions.cells import visible
from headgate.insight.dashboard.questions.selection import ResultTimes, Selection, chosen_rows, span
from headgate.insight.dashboard.questions.sql import Condition, label, listed
from headgate.insight.dashboard.questions.view import Facts, Figure, GoldView
from headgate.insight.querying.sandbox import quoted

MOST_SERIES = 8
TOTAL = "total"


@dataclass(frozen=True)
class SeriesQuestion:
    """``by`` are the keys whose values each have a line; empty for one line over all rows.
    ``width`` is the greatest number of points, ``top`` the greatest number of lines."""

    figure: Figure
    by: tuple[str, ...]
    selection: Selection
    width: int = 800
    top: int = 5


def grouping(facts: Facts, figure: Figure, asked: str | None) -> tuple[str, ...]:
    """The keys whose values each have a line: the requested one, or none for one line over all
    rows. A figure that cannot be combined has a line for each combination of all keys. Raises
    BadQuestionError."""
    if not facts.keys:
        return ()
    if figure.across is None:
        return facts.keys
    if asked in (None, "", TOTAL):
        return ()
    return (facts.key(str(asked)),)


def series(view: GoldView, question: SeriesQuestion) -> dict[str, Any]:
    """``t`` are the beginnings of points in seconds since 1970; a point stands for ``per_point``
    windows. ``v`` has the mean of their values, ``low`` and ``high`` the smallest and the greatest,
    if there are several windows; null if there is no row. For each point, ``open`` is 1 if a window
    is open, ``late`` counts the late rows of its windows (of all keys) that were not replayed,
    ``revised`` the rows that were revised."""
    facts, found = view.facts, span(view)
    if found is None or facts.begin is None:
        return _answer(question, [], [], step=0, per_point=1)
    chosen = chosen_rows(view, question.selection)
    bounds = _bounds(view, facts.begin, chosen) if chosen.text != "true" else found.bounds
    if bounds is None:
        return _answer(question, [], [], step=found.step, per_point=1)
    grid = _Grid.of(bounds, found, question.width)
    rows = view.ask(
        _sql(facts.begin, question, chosen),
        [*_parameters(question, chosen), grid.first, grid.size],
        _columns(facts, question),
    )
    answer = _answer(
        question, grid.times, _lines(rows, grid), step=found.step, per_point=grid.per_point
    )
    marks = {
        "open": [0] * grid.number,
        "revised": [0] * grid.number,
        "late": _late(view, facts.begin, grid),
    }
    for row in rows:
        marks["open"][row[1]] |= int(row[6])
        marks["revised"][row[1]] += int(row[7])
    return answer | marks


@dataclass(frozen=True)
class _Grid:
    """Points of ``size`` microseconds each."""

    first: int
    size: int
    number: int
    per_point: int

    @staticmethod
    def of(bounds: tuple[int, int], found: ResultTimes, width: int) -> _Grid:
        windows = (bounds[1] - bounds[0]) // found.step + 1
        per_point = -(-windows // max(width, 1))
        return _Grid(bounds[0], per_point * found.step, -(-windows // per_point), per_point)

    @property
    def times(self) -> list[float]:
        return [(self.first + place * self.size) / 1e6 for place in range(self.number)]


def _bounds(view: GoldView, begin: str, chosen: Condition) -> tuple[int, int] | None:
    at = f"epoch_us({quoted(begin)})"
    ((first, last),) = view.ask(
        f"SELECT min({at}), max({at}) FROM gold WHERE {chosen.text}",
        chosen.parameters,
        (begin, *view.facts.keys),
    )
    return None if first is None else (first, last)


def _columns(facts: Facts, question: SeriesQuestion) -> tuple[str, ...]:
    counter = (facts.counter,) if facts.counter else ()
    return (
        *(str(facts.begin), *facts.keys, question.figure.name),
        *(*counter, "final", "revision"),
    )


def _sql(begin: str, question: SeriesQuestion, chosen: Condition) -> str:
    """Columns: label, point, mean, least, greatest, score, open, revised, line."""
    name, by = quoted(question.figure.name), question.by
    # A figure without ``across`` has one row for each window and line: ``max`` gives its value.
    combined = f"{question.figure.across or 'max'}({name})"
    score = f"{question.figure.across or 'avg'}({name})"
    lines, joined = "SELECT 0 AS line, '' AS label, 0 AS score", ""
    if by:
        # The few keys are found first: computing a label for each row would take longer than the
        # rest.
        lines = f"""
            SELECT row_number() OVER (ORDER BY score DESC NULLS LAST, {listed(by)}) AS line,
                {label(by)} AS label, score, {listed(by)}
            FROM (
                SELECT {listed(by)}, {score} AS score FROM gold WHERE {chosen.text}
                GROUP BY {listed(by)} ORDER BY score DESC NULLS LAST, {listed(by)} LIMIT ?
            )
        """
        joined = " AND ".join(f"g.{k} IS NOT DISTINCT FROM l.{k}" for k in map(quoted, by))
    return f"""
        WITH l AS ({lines}), windows AS (
            SELECT l.line, epoch_us(g.{quoted(begin)}) AS t, {combined} AS v,
                bool_or(NOT final) AS is_open, count(*) FILTER (revision > 0) AS revised
            FROM (SELECT * FROM gold WHERE {chosen.text}) g JOIN l ON {joined or "true"}
            GROUP BY l.line, t
        )
        SELECT any_value(label), CAST((t - ?) // ? AS INTEGER) AS point, CAST(avg(v) AS DOUBLE),
            CAST(min(v) AS DOUBLE), CAST(max(v) AS DOUBLE), any_value(score), bool_or(is_open),
            CAST(sum(revised) AS BIGINT), line
        FROM windows JOIN l USING (line) GROUP BY line, point ORDER BY line, point
    """


def _parameters(question: SeriesQuestion, chosen: Condition) -> list[object]:
    if not question.by:
        return [*chosen.parameters]
    return [*chosen.parameters, min(question.top, MOST_SERIES), *chosen.parameters]


def _lines(rows: Sequence[Any], grid: _Grid) -> list[dict[str, Any]]:
    lines: dict[int, dict[str, Any]] = {}
    for label_, point, mean, least, greatest, _, _, _, line in rows:
        if line not in lines:
            empty = {each: [None] * grid.number for each in ("v", "low", "high")}
            lines[line] = {"label": visible(label_), **empty}
        for name, value in (("v", mean), ("low", least), ("high", greatest)):
            lines[line][name][point] = value
    if grid.per_point == 1:
        for each in lines.values():
            del each["low"], each["high"]
    return list(lines.values())


def _late(view: GoldView, begin: str, grid: _Grid) -> list[int]:
    counts = [0] * grid.number
    late = view.shown.version(LATE.path(view.table.name))
    if late is None or late.rows == 0:
        return counts
    found = view.reader.ask(
        f"SELECT CAST((epoch_us({quoted(begin)}) - ?) // ? AS BIGINT) AS point, count(*) "
        f"FROM late WHERE {REPLAYED} IS NULL GROUP BY 1",
        (grid.first, grid.size),
        late=(late, (begin, REPLAYED)),
    ).rows
    for point, count in found:
        if point is not None and 0 <= point < grid.number:
            counts[point] = count
    return counts


def _answer(
    question: SeriesQuestion,
    times: Sequence[float],
    lines: Sequence[dict[str, Any]],
    *,
    step: int,
    per_point: int,
) -> dict[str, Any]:
    return {
        "figure": question.figure.name,
        "across": question.figure.across,
        "by": question.by,
        "t": times,
        "series": lines,
        "step": step / 1e6,
        "per_point": per_point,
        "open": [],
        "late": [],
        "revised": [],
    }
