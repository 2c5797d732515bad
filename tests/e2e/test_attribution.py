"""The README's example of a join, in a new clone."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_readme import CLONE, words
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

HEADING = "Joins"

HOUR = timedelta(hours=1)
Event = dict[str, Any]


def events(kind: str) -> list[Event]:
    """The events of the sample files."""
    found = []
    for file in sorted((CLONE / "pipelines/examples/attribution/events").iterdir()):
        for line in file.read_text("utf-8").splitlines():
            event = json.loads(line)
            if event["kind"] == kind:
                found.append({**event, "at": datetime.fromisoformat(event["at"])})
    return found


def pairs() -> list[tuple[Event, Event]]:
    """Computed without Headgate, with the late purchase."""
    return [
        (click, purchase)
        for click in events("click")
        for purchase in events("purchase")
        if click["user"] == purchase["user"]
        and timedelta(0) <= purchase["at"] - click["at"] <= HOUR
    ]


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ")]
    assert len(told) == 16
    assert [line for line in told if line not in said] == []


def test_the_pairs_are_those_of_all_events(folder: Path, typed: SaidHere) -> None:
    rows = read(folder / "lake", "gold/bought", "attribution")
    assert sorted((row["click"], row["purchase"], row["amount"]) for row in rows) == sorted(
        (click["event_id"], purchase["event_id"], Decimal(purchase["amount"]))
        for click, purchase in pairs()
    )
    of_hours: dict[tuple[datetime, str], list[tuple[Event, Event]]] = defaultdict(list)
    for click, purchase in pairs():
        hour = purchase["at"].replace(minute=0, second=0)
        of_hours[hour, click["campaign"]].append((click, purchase))
    assert {
        key: (len({c["event_id"] for c, _ in found}), sum(Decimal(p["amount"]) for _, p in found))
        for key, found in of_hours.items()
    } == {
        (row["window_start"], row["campaign"]): (row["clicks"], row["revenue"])
        for row in read(folder / "lake", "gold/campaigns", "attribution")
    }
    assert typed.json("ledger", "attribution", "--by-id")["balanced"] is True
