"""The answer of a chart, as its page draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.insight.dashboard.boards.binding import bare, prepare, registered
from headgate.insight.dashboard.boards.model import Chart, TableName
from headgate.insight.dashboard.errors import DashboardError
from headgate.insight.dashboard.questions.cells import cells, is_number, text_of, visible
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.reading.engine import Answer, answered, first_line
from headgate.insight.dashboard.reading.versions import ReleasedVersion
from headgate.insight.querying.sandbox import quoted

MOST_LINE_ROWS, MOST_BARS, MOST_TABLE_ROWS = 50_000, 60, 500
MOST_SERIES = 8  # a page has as many colours
_POINTS = 1_000


class ChartError(DashboardError):
    """The SQL of a chart failed, or its rows cannot be drawn."""


def answer(
    reader: Reader, chart: Chart, versions: Mapping[TableName, ReleasedVersion]
) -> dict[str, Any]:
    """The answer of a chart. ``cut``: whether there are more rows than are shown. Raises
    TooMuchError, ChartError."""
    import duckdb

    read = {registered(n): (v, tuple(v.schema.names)) for n, v in versions.items()}
    engine = reader.engine
    sources = reader.sources(read)
    sql = bare(chart.sql)
    most = {"line": MOST_LINE_ROWS, "bar": MOST_BARS, "table": MOST_TABLE_ROWS}.get(chart.kind, 1)
    try:
        with (
            engine.connection(sources, lambda c: prepare(c, versions)) as connection,
            engine.limited(connection),
        ):
            described = connection.execute(f"DESCRIBE {sql}").fetchall()
            types = {str(row[0]): str(row[1]) for row in described}
            shown = ", ".join(_expression(chart, name, type_) for name, type_ in types.items())
            # An ORDER BY of the statement keeps its effect: DuckDB keeps the order of rows.
            connection.execute(f"SELECT {shown} FROM ({sql}) LIMIT {most + 1}")
            found = answered(connection)
    except duckdb.Error as error:
        raise ChartError(first_line(error), remedy=f"correct the sql of {chart.name}") from error
    rows = Answer(found.columns, tuple(types.values()), found.rows[:most])
    cut = len(found.rows) > most
    form = {"line": _lines, "bar": _bars, "number": _number, "table": _table}[chart.kind]
    return {"kind": chart.kind, "unit": chart.unit, "cut": cut, **form(chart, rows)}


def _expression(chart: Chart, name: str, type_: str) -> str:
    if chart.kind in ("line", "bar") and name in chart.y:
        return f"CAST({quoted(name)} AS DOUBLE) AS {quoted(name)}"
    if chart.kind == "line" and name == chart.x:
        if type_.startswith(("TIMESTAMP", "DATE")):
            moment = f"CAST({quoted(name)} AS TIMESTAMPTZ)"
            return f"epoch_us({moment}) / 1e6 AS {quoted(name)}"
        return f"CAST({quoted(name)} AS DOUBLE) AS {quoted(name)}"
    return f"{text_of(name, type_)} AS {quoted(name)}"


def _lines(chart: Chart, found: Answer) -> dict[str, Any]:
    place = {name: index for index, name in enumerate(found.columns)}
    x, kind = place[chart.x or ""], dict(zip(found.columns, found.types, strict=True))
    points: dict[str | None, dict[float, float | None]] = {}
    for row in found.rows:
        if row[x] is None:
            continue
        named = (
            [(row[place[chart.series]], chart.y[0])]
            if chart.series
            else [(name, name) for name in chart.y]
        )
        for value, name in named:
            line = points.setdefault(value, {})
            if row[x] in line:
                raise _twice(chart)
            line[row[x]] = row[place[name]]
    shown = dict(list(points.items())[:MOST_SERIES])
    xs = sorted({each for line in shown.values() for each in line})
    per_point = -(-len(xs) // _POINTS) or 1
    return {
        "time": not is_number(kind[chart.x or ""]),
        "t": xs[::per_point],
        "per_point": per_point,
        "series": [
            {
                "label": "null" if value is None else visible(value),
                "v": _reduced([line.get(each) for each in xs], per_point),
            }
            for value, line in shown.items()
        ],
        "left_out": max(len(points) - MOST_SERIES, 0),
    }


def _twice(chart: Chart) -> ChartError:
    of, first = (f" of {chart.series}", "") if chart.series else ("", "add series, or ")
    return ChartError(
        f"several rows have the same {chart.x}{of}, and a line has one value for each",
        remedy=f"{first}aggregate the rows with GROUP BY in the sql of {chart.name}",
    )


def _reduced(values: Sequence[float | None], per_point: int) -> list[float | None]:
    """The mean of each group of ``per_point`` values."""
    if per_point == 1:
        return list(values)
    parts = (values[i : i + per_point] for i in range(0, len(values), per_point))
    return [_mean([v for v in part if v is not None]) for part in parts]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _bars(chart: Chart, found: Answer) -> dict[str, Any]:
    place = {name: index for index, name in enumerate(found.columns)}
    return {
        "labels": [cells([row[place[chart.x or ""]]])[0] for row in found.rows],
        "series": [
            {"label": name, "v": [row[place[name]] for row in found.rows]} for name in chart.y
        ],
    }


def _number(chart: Chart, found: Answer) -> dict[str, Any]:
    name = chart.y[0] if chart.y else found.columns[0]
    place = found.columns.index(name)
    return {"text": cells(found.rows[0])[place] if found.rows else None}


def _table(chart: Chart, found: Answer) -> dict[str, Any]:
    return {
        "columns": [visible(name) for name in found.columns],
        "numbers": [is_number(type_) for type_ in found.types],
        "cells": [cells(row) for row in found.rows],
    }
