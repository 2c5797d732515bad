"""The README's example of orders with the rates of their times, in a new clone."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_readme import CLONE, words
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

HEADING = "Rates of a time"

DAY = timedelta(days=1)
Event = dict[str, Any]


def events(kind: str) -> list[Event]:
    """The valid events of the sample files, each once."""
    found: dict[str, Event] = {}
    for file in sorted((CLONE / "pipelines/examples/rates/sales").iterdir()):
        for line in file.read_text("utf-8").splitlines():
            event = json.loads(line)
            if event["kind"] == kind and event["at"] != "today":
                at = datetime.fromisoformat(event["at"])
                found.setdefault(event["id"], {**event, "at": at})
    return list(found.values())


def in_euros() -> dict[str, tuple[Event, Decimal | None, Decimal | None]]:
    """Each order with its rate and its euros, by its id. Computed without Headgate, with the late
    rate."""
    rates = events("rate")
    found = {}
    for order in events("order"):
        known = [
            rate
            for rate in rates
            if rate["currency"] == order["currency"]
            and timedelta(0) <= order["at"] - rate["at"] <= DAY
        ]
        last = max(known, key=lambda rate: rate["at"], default=None)
        rate = None if last is None else Decimal(last["rate"])
        euros = None if rate is None else Decimal(order["amount"]) * rate
        cents = None if euros is None else euros.quantize(Decimal("0.01"), ROUND_HALF_UP)
        found[order["id"]] = order, rate, cents
    return found


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ")]
    assert len(told) == 5
    assert [line for line in told if line not in said] == []


def test_each_order_has_the_rate_of_its_time(folder: Path, typed: SaidHere) -> None:
    expected = in_euros()
    rows = read(folder / "lake", "gold/in_euros", "rates")
    assert {row["order_id"]: (row["rate"], row["euros"]) for row in rows} == {
        id_: (rate, euros) for id_, (_, rate, euros) in expected.items()
    }
    assert None in {row["rate"] for row in rows}
    assert {row["currency"] for row in rows if row["revision"]} == {"USD"}
    of_hours: dict[datetime, list[Decimal | None]] = defaultdict(list)
    for order, _, euros in expected.values():
        of_hours[order["at"].replace(minute=0, second=0)].append(euros)
    assert {
        row["window_start"]: (row["orders"], row["euros"], row["without_rate"])
        for row in read(folder / "lake", "gold/euros_per_hour", "rates")
    } == {
        hour: (len(found), sum(each for each in found if each is not None), found.count(None))
        for hour, found in of_hours.items()
    }
    assert typed.json("ledger", "rates", "--by-id")["balanced"] is True
