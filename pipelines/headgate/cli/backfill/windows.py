"""The final windows that the gold tables have now, read without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.declaration.operators import columns_of
from headgate.querying.sql import select
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.backfill.running import Asked


def windows_of(layout: Layout, asked: Asked) -> Mapping[str, tuple[int, int]]:
    """The number of final windows in the range and of their rows, by table."""
    found = {}
    for name in asked.tables:
        begin, end = [*columns_of(asked.deployed.gold[name])][:2]
        since = f"{end} > " if asked.by_end else f"{begin} >= "
        within = f"final AND {since}{_literal(asked.begin)}"
        if asked.end is not None:
            within += f" AND {end} <= {_literal(asked.end)}"
        sql = f"SELECT count(DISTINCT {begin}), count(*) FROM gold.{name} WHERE {within}"
        ((windows, rows),) = select(asked.deployed, layout, sql)[1]
        found[name] = (int(windows), int(rows))
    return found


def final_range(layout: Layout, asked: Asked, name: str) -> tuple[datetime, datetime] | None:
    """The time range of the final windows of a gold table; None if it has none."""
    begin, end = [*columns_of(asked.deployed.gold[name])][:2]
    sql = f"SELECT min({begin}), max({end}) FROM gold.{name} WHERE final"
    ((first, last),) = select(asked.deployed, layout, sql)[1]
    return None if first is None else (first, last)


def _literal(time: datetime) -> str:
    return f"TIMESTAMPTZ '{time:%Y-%m-%d %H:%M:%S.%f}+00'"
