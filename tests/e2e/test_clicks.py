"""The README's example of user sessions, in a new clone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_readme import CLONE, words
from tests.oracle.sessions import bounds, sessions
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

HEADING = "User sessions"

GAP = timedelta(minutes=15)


def clicks() -> list[dict[str, Any]]:
    """The valid clicks of the sample files, each once."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((CLONE / "pipelines/examples/clicks/clicks").iterdir()):
        for line in file.read_text("utf-8").splitlines():
            click = json.loads(line)
            if click["at"] != "yesterday":
                found.setdefault(click["click_id"], click)
    return list(found.values())


def time_of(click: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(click["at"])


def visits() -> Iterator[tuple[Any, ...]]:
    """Computed without Headgate, with the late click."""
    by_user = defaultdict(list)
    for click in clicks():
        by_user[click["user"]].append(click)
    for user, of_user in by_user.items():
        for session in sessions(of_user, time_of, GAP):
            pages = [click["page"] for click in session]
            bought = "/checkout" in pages
            yield (user, *bounds(session, time_of, GAP), len(pages), pages[0], pages[-1], bought)


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ")]
    assert len(told) == 9
    assert [line for line in told if line not in said] == []


def test_the_visits_are_those_of_all_clicks(folder: Path, typed: SaidHere) -> None:
    names = ("user", "window_start", "window_end", "clicks", "entry", "exit", "bought")
    rows = read(folder / "lake", "gold/visits", "clicks")
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(visits())
    assert all(row["final"] for row in rows)
    (late,) = read(folder / "lake", "late/visits", "clicks")
    assert late["_event_id"] == "k-90"
    assert late["replayed"] is not None
    assert typed.json("ledger", "clicks", "--by-id")["balanced"] is True
