"""The README's example of the items that are viewed most, in a new clone."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.test_readme import CLONE, words
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

HEADING = "Hot items"

HOUR, QUARTER = timedelta(hours=1), timedelta(minutes=15)
MIDNIGHT = datetime(2026, 5, 4, tzinfo=UTC)


class View(NamedTuple):
    item: str
    user: str
    at: datetime


def views() -> list[View]:
    """The valid views of the sample files, each once."""
    found: dict[str, View] = {}
    for file in sorted((CLONE / "pipelines/examples/hot_items/views").iterdir()):
        for line in file.read_text("utf-8").splitlines():
            view = json.loads(line)
            if view["at"] != "now" and view["item"] is not None:
                at = datetime.fromisoformat(view["at"])
                found.setdefault(view["view_id"], View(view["item"], view["user"], at))
    return list(found.values())


def hours() -> dict[datetime, list[View]]:
    """The views of each hour, by its end. Computed without Headgate, with the late views."""
    ends = [MIDNIGHT + n * QUARTER for n in range(96)]
    found = {end: [view for view in views() if end - HOUR <= view.at < end] for end in ends}
    return {end: of_hour for end, of_hour in found.items() if of_hour}


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ")]
    assert len(told) == 5
    assert [line for line in told if line not in said] == []


def test_the_items_are_those_with_the_most_views_of_the_hour(folder: Path, typed: SaidHere) -> None:
    expected = hours()
    rows = {r["window_end"]: r for r in read(folder / "lake", "gold/top_items", "hot_items")}
    assert rows.keys() == expected.keys()
    for end, of_hour in expected.items():
        row, counts = rows[end], Counter(view.item for view in of_hour)
        users = Counter(item for item, _ in {(view.item, view.user) for view in of_hour})
        assert (row["hour_start"], row["items"]) == (end - HOUR, len(counts))
        assert row["views"] == counts.total()
        # Items with equal counts may come in any order.
        assert [counts[item] for item in row["top"]] == row["top_views"]
        assert [users[item] for item in row["top"]] == row["top_users"]
        assert len({*row["top"]}) == min(3, len(counts))
        assert row["top_views"] == sorted(counts.values(), reverse=True)[:3]
    late = read(folder / "lake", "late/views_per_item", "hot_items")
    # The view of an item belongs to four hours. The last of them was still open.
    assert {row["item"] for row in late} == {"lamp"}
    assert {row["window_end"] for row in late} == {
        MIDNIGHT + timedelta(hours=10) + n * QUARTER for n in range(3)
    }
    assert {row["window_end"] for row in rows.values() if row["revision"]} == {
        row["window_end"] for row in late
    }
    assert typed.json("ledger", "hot_items", "--by-id")["balanced"] is True
