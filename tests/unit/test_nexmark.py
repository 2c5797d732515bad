"""The generator of Nexmark, and what the page says of its queries."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from tests.nexmark.answers import ANSWERS
from tests.nexmark.declared import FILE, document
from tests.nexmark.generator import AUCTION, BID, FIRST_ID, HOT_CHANNELS, PERSON, Stream

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
STREAM = Stream(3, START, rate=1000.0, disorder=40, busy=4_000, pause=timedelta(hours=2))
PAGE = FILE.parents[3] / "docs/nexmark.md"
QUERIES = [f"q{number}" for number in range(24)]
Event = dict[str, Any]


def events(count: int, stream: Stream = STREAM) -> list[Event]:
    return [json.loads(line) for line in islice(stream.lines(), count)]


def of(kind: str, found: list[Event]) -> list[Event]:
    return [event[kind] for event in found if kind in event]


def time(event: Event) -> datetime:
    return datetime.fromisoformat(event["dateTime"])


@pytest.mark.slow
def test_the_size_of_slices_changes_nothing() -> None:
    whole = [*islice(STREAM.lines(), 20_001)]
    for size in (20_001, 7_000, 1_234):
        slices = [*STREAM.slices(20_001, size)]
        assert [line for part in slices for line in part.lines] == whole
        for part in slices:
            assert max(time(json.loads(line)) for line in part.lines) <= part.now
    other = Stream(4, START, rate=1000.0, disorder=40)
    assert [*islice(other.lines(), 100)] != whole[:100]


@pytest.mark.slow
def test_the_proportions_and_the_skew_are_those_of_nexmark() -> None:
    found = events(48_000)
    kinds = Counter(event["event_type"] for event in found)
    assert kinds == {PERSON: 960, AUCTION: 2_880, BID: 44_160}
    bids, auctions = of("bid", found), of("auction", found)
    hot = sum((bid["auction"] - FIRST_ID) % 100 == 0 for bid in bids)
    assert 0.49 < hot / len(bids) < 0.52
    hot = sum((bid["bidder"] - FIRST_ID) % 100 == 1 for bid in bids)
    assert 0.74 < hot / len(bids) < 0.77
    hot = sum((auction["seller"] - FIRST_ID) % 100 == 0 for auction in auctions)
    assert 0.72 < hot / len(auctions) < 0.78
    assert {auction["category"] for auction in auctions} == {10, 11, 12, 13, 14}
    assert 0.49 < sum(bid["channel"] in HOT_CHANNELS for bid in bids) / len(bids) < 0.51
    named = sum("&channel_id=" in bid["url"] for bid in bids)
    assert 0.44 < named / len(bids) < 0.46
    cheap = sum(bid["price"] < 10_000 for bid in bids)
    assert 0.32 < cheap / len(bids) < 0.35
    assert 100 <= min(bid["price"] for bid in bids) < max(bid["price"] for bid in bids) <= 10**8


def test_the_times() -> None:
    """Events are out of order by less than 40 places, but not over a pause. Auctions end."""
    found = events(8_000)
    times = [time(event) for event in found]
    ordered = sorted(times)
    assert times != ordered
    newest = START
    for at in times:
        assert newest - at < timedelta(milliseconds=40)
        newest = max(newest, at)
    assert ordered[3_999] - START == timedelta(milliseconds=3_999)
    assert ordered[4_000] - START == timedelta(hours=2, milliseconds=4_000)
    lengths = [
        datetime.fromisoformat(event["auction"]["expires"]) - time(event)
        for event in found
        if "auction" in event
    ]
    assert timedelta(0) < min(lengths) < STREAM.longest_auction / 10
    assert STREAM.longest_auction * 0.9 < max(lengths) <= STREAM.longest_auction


@pytest.mark.slow
def test_some_bids_are_for_auctions_that_come_afterwards() -> None:
    known: Counter[str] = Counter()
    last = 0
    for event in events(50_000, Stream(3, START, rate=1000.0)):
        if "auction" in event:
            last = event["auction"]["id"]
        elif "bid" in event:
            known["later" if event["bid"]["auction"] > last else "there"] += 1
    assert known["later"] > 1_000
    assert known["there"] > 40_000


def test_what_makes_no_stream_is_refused() -> None:
    for wrong in (
        {"rate": 0.0},
        {"seed": -1},
        {"busy": 0},
        {"disorder": -1},
        {"start": datetime(2026, 3, 1)},  # noqa: DTZ001
        {"pause": timedelta(seconds=-1)},
    ):
        with pytest.raises(ValueError, match="must"):
            Stream(**{"seed": 1, "start": START, "rate": 1.0, **wrong})  # type: ignore[arg-type]


def test_each_answer_is_a_table_of_the_example() -> None:
    """And the tables that answer no query are there for one."""
    whole = document(ANSWERS.keys())
    for query, answer in ANSWERS.items():
        layer, _, name = answer.table.partition("/")
        assert name == query
        assert name in whole[layer]
        alone = document([query])
        assert name in alone[layer]
        assert len(alone["silver"]) <= 2
    text = FILE.read_text("utf-8")
    assert all(f"\n  {name}:\n" in text for layer in ("silver", "gold") for name in whole[layer])
    assert len(re.findall(r"(?m)^  [a-z]\w+:$", text)) == 1 + len(whole["silver"] | whole["gold"])


def test_the_page_says_which_queries_are_declared() -> None:
    """And the others wait for a part."""
    rows = re.findall(r"^\| (q\d+) \|[^|]*\| (.*) \|$", PAGE.read_text("utf-8"), re.M)
    assert [query for query, _ in rows] == QUERIES
    missing = {query for query, how in rows if how.startswith("**missing**: ")}
    assert missing == {*QUERIES} - ANSWERS.keys()
    assert f"declares {len(ANSWERS)} of the queries" in PAGE.read_text("utf-8").replace("\n", " ")
