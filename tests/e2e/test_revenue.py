"""The README's example of days that are made from hours, in a new clone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.test_readme import CLONE, words
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

HEADING = "Days from hours"

BERLIN = ZoneInfo("Europe/Berlin")


def lines() -> Iterator[tuple[datetime, dict[str, Any]]]:
    """The lines of the valid orders, each once."""
    orders: dict[str, dict[str, Any]] = {}
    for file in sorted((CLONE / "pipelines/examples/revenue/orders").iterdir()):
        for line in file.read_text("utf-8").splitlines():
            order = json.loads(line, parse_float=Decimal)
            if order["at"] != "yesterday":
                orders.setdefault(order["order_id"], order)
    for order in orders.values():
        for each in order["items"]:
            yield datetime.fromisoformat(order["at"]), each


def midnight(day: datetime) -> datetime:
    return datetime.combine(day.date(), time(), BERLIN).astimezone(UTC)


def days() -> dict[datetime, tuple[datetime, int, int, Decimal]]:
    """Computed without Headgate, with the late order."""
    found: dict[datetime, list[dict[str, Any]]] = defaultdict(list)
    for at, line in lines():
        found[midnight(at.astimezone(BERLIN))].append(line)
    return {
        day: (
            midnight(day.astimezone(BERLIN) + timedelta(hours=30)),
            len(of_day),
            sum(line["pieces"] for line in of_day),
            sum((line["pieces"] * line["price"] for line in of_day), Decimal(0)),
        )
        for day, of_day in found.items()
    }


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ")]
    assert len(told) == 7
    assert [line for line in told if line not in said] == []


def test_the_days_are_those_of_all_orders(folder: Path, typed: SaidHere) -> None:
    rows = read(folder / "lake", "gold/revenue_per_day", "revenue")
    names = ("window_end", "lines", "pieces", "revenue")
    assert {r["window_start"]: tuple(r[name] for name in names) for r in rows} == days()
    assert {row["window_end"] - row["window_start"] for row in rows} == {
        timedelta(hours=24),
        timedelta(hours=25),
    }
    assert all(row["final"] for row in rows)
    assert typed.json("ledger", "revenue", "--by-id")["balanced"] is True
