"""The README's example with several sources, in a new clone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.test_readme import CLONE, README, words
from tests.support.said import SaidHere
from tests.support.tables import read

pytestmark = pytest.mark.e2e

MINUTE = timedelta(minutes=1)
Key = tuple[datetime, str]


class Source(NamedTuple):
    """What the declaration says about a source, its silver and its gold table."""

    name: str
    id: Callable[[dict[str, Any]], str]
    time: str
    key: str
    value: str
    allowed_lateness: timedelta


ORDERS = Source(
    *(
        "orders",
        lambda row: f'["{row["order_id"]}","{row["status"]}"]',
        "changed_at",
        "status",
        "total",
    ),
    timedelta(seconds=30),
)
PAYMENTS = Source(
    *("payments", lambda row: row["payment_id"], "paid_at", "method", "amount"),
    timedelta(seconds=10),
)


class Expected(NamedTuple):
    """Ids in silver and in the late table, and count and sum of each row of gold."""

    silver: set[str]
    late: set[str]
    gold: dict[Key, tuple[int, Decimal]]


def documents(source: Source) -> Iterator[dict[str, Any]]:
    """The valid records of the sample files, each once: a later copy is a duplicate."""
    seen = set()
    for file in sorted((CLONE / "pipelines/examples/checkout" / source.name).iterdir()):
        for line in file.read_text("utf-8").splitlines():
            try:
                found = json.loads(line, parse_float=Decimal)
            except ValueError:
                continue
            if not isinstance(found[source.value], str) and source.id(found) not in seen:
                seen.add(source.id(found))
                yield found


def expected(source: Source) -> Expected:
    """Computed without Headgate. The watermark is the greatest time so far, also of rejected
    records."""
    silver, late = set(), set()
    gold: dict[Key, tuple[int, Decimal]] = defaultdict(lambda: (0, Decimal(0)))
    watermark = datetime.min.replace(tzinfo=UTC)
    for row in documents(source):
        time = datetime.fromisoformat(row[source.time])
        start = time.replace(second=0)
        if row[source.value] > 0:
            silver.add(source.id(row))
            if start + MINUTE + source.allowed_lateness <= watermark:
                late.add(source.id(row))
            else:
                count, total = gold[start, row[source.key]]
                gold[start, row[source.key]] = count + 1, total + row[source.value]
        watermark = max(watermark, time)
    return Expected(silver, late, dict(gold))


@pytest.fixture(scope="module")
def shown() -> str:
    """The first commands of the section, and what they print."""
    return README.split("## Several sources\n")[1].split("```console\n")[1].split("```")[0]


def test_the_readme_shows_what_is_printed(typed: SaidHere, shown: str) -> None:
    """Except for the process and the time that has passed."""
    said = words(typed.everything)
    told = [line for line in words(shown) if not line.startswith("$ ") and " ago" not in line]
    assert len(told) > 15
    assert [line for line in told if line not in said] == []


@pytest.mark.parametrize("source", [ORDERS, PAYMENTS], ids=lambda source: source.name)
def test_the_tables_of_each_source(source: Source, folder: Path, typed: SaidHere) -> None:
    def ids(table: str) -> list[str]:
        return sorted(row["_event_id"] for row in read(folder / "lake", table, "checkout"))

    wanted, of = expected(source), f"{source.name}_per_minute"
    assert ids(f"silver/valid_{source.name}") == sorted(wanted.silver)
    assert ids(f"late/{of}") == sorted(wanted.late)
    total = "total" if source is ORDERS else "paid"
    rows = read(folder / "lake", f"gold/{of}", "checkout")
    found = {(row["window_start"], row[source.key]): (row[source.name], row[total]) for row in rows}
    assert found == wanted.gold
    assert len(rows) == len(found)
    assert all(row["final"] for row in rows)


def test_the_sample_has_what_the_example_is_about(typed: SaidHere) -> None:
    """Each source has a duplicate, a quarantined and a rejected record. An order is late, but none
    because the payments are an hour ahead."""
    document = typed.json("ledger", "checkout", "--by-id")
    assert document["balanced"] is True
    for source in (ORDERS, PAYMENTS):
        facts = document["sources"][source.name]
        silver = document["silver"][f"valid_{source.name}"]
        assert min(facts["duplicate"], facts["quarantined"], silver["rejected"]) > 0
    assert len(expected(ORDERS).late) == 1
    assert expected(PAYMENTS).late == set()
