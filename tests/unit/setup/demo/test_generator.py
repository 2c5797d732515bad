from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from itertools import pairwise

import pytest

from headgate.setup.demo.generator import KINDS, Slice, bids

START = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
EVENTS = 60_000
RATE = 100.0


@cache
def pieces() -> tuple[Slice, ...]:
    return tuple(bids(EVENTS, 7, START, RATE, slice_events=5_000))


@cache
def stream() -> tuple[bytes, ...]:
    return tuple(line for piece in pieces() for line in piece.lines)


def parsed(line: bytes) -> tuple[str, datetime] | None:
    """The id and time of a healthy bid, else None."""
    try:
        bid = json.loads(line)
        assert isinstance(bid["auction"], int)
        assert isinstance(bid["price"], float)
        assert isinstance(bid["event_id"], str)
        time = datetime.fromisoformat(bid["event_time"])
    except (ValueError, TypeError, KeyError, AssertionError):
        return None
    return (bid["event_id"], time) if time.tzinfo else None


@cache
def arrivals() -> tuple[tuple[datetime, bytes, tuple[str, datetime] | None], ...]:
    return tuple(
        (START + timedelta(seconds=i / RATE), line, parsed(line)) for i, line in enumerate(stream())
    )


def test_a_seed_gives_these_bytes_for_ever() -> None:
    digest = hashlib.sha256(b"\n".join(stream())).hexdigest()
    assert digest == "252d9c92b9952808b03f31fb649c3251dc1bada97fdb83d9a514c2110d36ce4a"


def test_another_seed_gives_other_bytes() -> None:
    (other,) = bids(5_000, 8, START, RATE)
    assert set(stream()).isdisjoint(other.lines)


@pytest.mark.slow
@pytest.mark.parametrize("slice_events", [1_000, 16_384, 125_000])
def test_slicing_does_not_change_a_byte(slice_events: int) -> None:
    pieces = list(bids(EVENTS, 7, START, RATE, slice_events=slice_events))
    assert tuple(line for piece in pieces for line in piece.lines) == stream()
    assert {len(piece.lines) for piece in pieces[:-1]} <= {slice_events}


def test_fewer_events_are_a_prefix() -> None:
    (piece,) = bids(1_234, 7, START, RATE)
    assert tuple(piece.lines) == stream()[:1_234]


def test_no_events_no_slices() -> None:
    assert list(bids(0, 7, START, RATE)) == []


def test_the_start_may_be_given_in_any_zone() -> None:
    local = START.astimezone(timezone(timedelta(hours=-5)))
    (piece,) = bids(100, 7, local, RATE)
    assert tuple(piece.lines) == stream()[:100]


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        next(bids(1, 7, START.replace(tzinfo=None), RATE))


@pytest.mark.slow
def test_shares_of_faults() -> None:
    shares: Counter[str] = Counter()
    seen: set[bytes] = set()
    for arrival, line, bid in arrivals():
        if line in seen:
            shares["duplicate"] += 1
            continue
        seen.add(line)
        if bid is None:
            shares["malformed"] += 1
            continue
        behind = arrival - bid[1]
        if behind < timedelta(hours=-1):
            shares["future"] += 1
        elif behind >= timedelta(minutes=5):
            shares["late"] += 1
            assert behind < timedelta(minutes=15, seconds=1)
        elif behind > timedelta(milliseconds=1):
            shares["out of order"] += 1
            assert behind <= timedelta(seconds=3, milliseconds=1)
    measured = {kind: count / EVENTS for kind, count in shares.items()}
    assert measured["duplicate"] == pytest.approx(0.02, rel=0.1)
    assert measured["out of order"] == pytest.approx(0.10, rel=0.05)
    assert measured["late"] == pytest.approx(0.01, rel=0.15)
    assert measured["malformed"] == pytest.approx(0.005, rel=0.2)
    assert 0 < measured["future"] < 0.001


def test_duplicates_follow_their_original_within_ten_minutes_and_are_healthy() -> None:
    first: dict[bytes, datetime] = {}
    for arrival, line, bid in arrivals():
        if line in first:
            assert bid is not None
            assert arrival - first[line] <= timedelta(minutes=10)
        first.setdefault(line, arrival)


def test_ids_are_unique_but_for_duplicates() -> None:
    ids = Counter(bid[0] for bid in {line: bid for _, line, bid in arrivals()}.values() if bid)
    assert max(ids.values()) == 1


@pytest.mark.parametrize("rate", [0.001, 0.5, 1e6])
def test_any_rate_has_duplicates(rate: float) -> None:
    (piece,) = bids(20_000, 7, START, rate)
    assert len(piece.lines) - len(set(piece.lines)) == pytest.approx(400, rel=0.2)


def test_no_event_time_is_after_now_but_for_days() -> None:
    bids_of = [bid for _, _, bid in arrivals()]
    for number, (before, piece) in enumerate(pairwise(pieces()), 1):
        assert piece.now - before.now == timedelta(seconds=50)
        times = [bid[1] for bid in bids_of[number * 5_000 : (number + 1) * 5_000] if bid]
        assert times
        ahead = [time - piece.now for time in times if time > piece.now]
        assert all(distance > timedelta(hours=23) for distance in ahead)


def test_every_line_is_one_line_and_every_kind_of_fault_occurs() -> None:
    assert not any(b"\n" in line or not line.strip() for line in stream())
    (line,) = (line for piece in bids(1, 7, START, RATE) for line in piece.lines)
    assert parsed(line)
    for spoil in KINDS.values():
        assert parsed(spoil(line)) is None
    broken = {line for _, line, bid in arrivals() if bid is None}
    assert sum(line.startswith(b"[") for line in broken) > 0
    assert sum(b"}{" in line for line in broken) > 0
    assert sum(b"\xe9" in line for line in broken) > 0
