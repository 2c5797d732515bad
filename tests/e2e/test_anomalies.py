"""The README's example of readings that are far from those before them, in a new clone."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import pytest

from tests.e2e.test_readme import CLONE, words
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

HEADING = "Anomalies"

HOUR = timedelta(hours=1)


class Reading(NamedTuple):
    id: str
    sensor: str
    celsius: float
    at: datetime


def readings() -> list[Reading]:
    """The valid readings of the sample files, each once."""
    found: dict[str, Reading] = {}
    for file in sorted((CLONE / "pipelines/examples/anomalies/readings").iterdir()):
        for line in file.read_text("utf-8").splitlines():
            each = json.loads(line)
            if each["celsius"] != "broken":
                at, id_ = datetime.fromisoformat(each["at"]), each["reading_id"]
                found.setdefault(id_, Reading(id_, each["sensor"], float(each["celsius"]), at))
    return list(found.values())


def before(one: Reading) -> list[float]:
    """The values of its sensor in the hour before a reading, and its own."""
    return [
        each.celsius
        for each in readings()
        if each.sensor == one.sensor and one.at - HOUR <= each.at <= one.at
    ]


def is_anomalous(one: Reading) -> bool:
    near = before(one)
    return len(near) >= 20 and abs(one.celsius - fmean(near)) > 3 * stdev(near)


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ")]
    assert len(told) == 5
    assert [line for line in told if line not in said] == []


def test_what_is_marked_is_far_from_the_readings_before_it(folder: Path, typed: SaidHere) -> None:
    rows = {r["reading_id"]: r for r in read(folder / "lake", "gold/checked", "anomalies")}
    expected = readings()
    assert rows.keys() == {each.id for each in expected}
    for each in expected:
        row, near = rows[each.id], before(each)
        assert row["readings"] == len(near)
        assert row["mean"] == pytest.approx(Decimal(fmean(near)), abs=Decimal("0.0051"))
        deviation = None if len(near) < 2 else pytest.approx(stdev(near), abs=0.0051)
        assert row["deviation"] == deviation
    marked = {id_ for id_, row in rows.items() if row["is_anomalous"]}
    odd = [each for each in expected if is_anomalous(each)]
    assert marked == {each.id for each in odd}
    # One reading of each sensor, among them one that was late.
    assert {each.sensor for each in odd} == {each.sensor for each in expected}
    per_hour = Counter((each.sensor, each.at.replace(minute=0, second=0)) for each in odd)
    counted = {
        (row["sensor"], row["window_start"]): row["anomalies"]
        for row in read(folder / "lake", "gold/anomalies_per_hour", "anomalies")
    }
    assert {key: count for key, count in counted.items() if count} == per_hour
    assert typed.json("ledger", "anomalies", "--by-id")["balanced"] is True
