"""The content of a dashboard's file, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
