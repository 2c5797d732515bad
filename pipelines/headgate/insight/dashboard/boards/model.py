"""A dashboard's file: its keys, and its content as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headgate.declaration.keys.key import Key

ChartKind = Literal["line", "bar", "number", "table"]
Width = Literal["third", "half", "full"]


@dataclass(frozen=True)
class TableName:
    """A gold table as SQL names it. ``pipeline`` is None if it is left out."""

    pipeline: str | None
    table: str

    def __str__(self) -> str:
        return f"{self.pipeline}.gold.{self.table}" if self.pipeline else f"gold.{self.table}"


@dataclass(frozen=True)
class Chart:
    """``x`` and ``y`` are columns of the answer; ``series`` is a column whose values each have a
    line. ``tables`` are those that the SQL reads."""

    name: str
    kind: ChartKind
    title: str
    sql: str
    width: Width = "half"
    x: str | None = None
    y: tuple[str, ...] = ()
    series: str | None = None
    unit: str | None = None
    tables: tuple[TableName, ...] = ()


@dataclass(frozen=True)
class Board:
    name: str
    title: str
    charts: Mapping[str, Chart]
    file: Path


CHART = Key(
    "NAME",
    "section",
    children=(
        Key(
            "kind",
            "choice",
            "`line`: figures over time or another rising column. `bar`: figures of categories. "
            "`number`: the first row's value, large. `table`: the rows.",
            required=True,
            choices=("line", "bar", "number", "table"),
        ),
        Key("title", "text", "Above the chart. Default: its name."),
        Key(
            "sql",
            "text",
            "One SELECT of DuckDB over gold tables: `gold.TABLE`, or `shop.gold.TABLE` where "
            "several pipelines are shown.",
            required=True,
        ),
        Key("x", "column", "The column of the horizontal axis. Default: the first one."),
        Key("y", "names", "The columns with the figures. Default: all numbers but `x`."),
        Key("series", "column", "A column whose values each have a line of their own."),
        Key("unit", "text", "Written after the figures, such as EUR."),
        Key(
            "width",
            "choice",
            "The part of the row that the chart takes.",
            default="half",
            choices=("third", "half", "full"),
        ),
    ),
)
BOARD = Key(
    "",
    "section",
    children=(
        Key("dashboard", "name", "The name, as in its address.", required=True),
        Key("title", "text", "The heading of the page. Default: its name."),
        Key("charts", "table", "The charts, in this order.", required=True, entry=CHART),
    ),
)
