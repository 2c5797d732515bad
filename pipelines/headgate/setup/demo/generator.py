"""A seeded stream of bids as JSON lines, with the faults that real producers have.

Record ``i`` arrives at ``start + i / rate``. Of all records 2 % repeat an earlier record byte for
byte, 10 % are up to 3 s out of order, 1 % are 5 to 15 minutes late, 0.5 % are malformed and 0.05 %
are dated days ahead; the others carry their arrival as event time. The same seed, start and rate
give the same bytes, for any number of events and any size of slices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

# Malformed records: each function damages a valid line in one way. Such a line has ``event_id``
# first, ``event_time`` last, and no spaces.
_PRICE = re.compile(rb'"price":[^,]*')
_AUCTION = re.compile(rb'"auction":[^,]*')


def cut(line: bytes) -> bytes:
    """The beginning of a line, as from a producer that died while writing."""
    return line[: len(line) * 2 // 3]


def not_an_object(line: bytes) -> bytes:
    return b"[%b]" % line


def without_id(line: bytes) -> bytes:
    return b"{" + line.split(b",", 1)[1]


def without_time(line: bytes) -> bytes:
    return line[: line.rindex(b',"event_time"')] + b"}"


def time_without_zone(line: bytes) -> bytes:
    return line[: -len(b'Z"}')] + b'"}'


def price_as_words(line: bytes) -> bytes:
    return _PRICE.sub(b'"price":"on request"', line)


def auction_as_object(line: bytes) -> bytes:
    return _AUCTION.sub(b'"auction":{"lot":"7"}', line)


def two_documents(line: bytes) -> bytes:
    """Two records on one line, as after a lost line feed."""
    return line + line


def invalid_utf8(line: bytes) -> bytes:
    return line.replace(b'"channel":"', b'"channel":"caf\xe9 ')


# Keep this order: the bytes that a seed gives depend on it.
KINDS: Mapping[str, Callable[[bytes], bytes]] = {
    kind.__name__: kind
    for kind in (
        cut,
        not_an_object,
        without_id,
        without_time,
        time_without_zone,
        price_as_words,
        auction_as_object,
        two_documents,
        invalid_utf8,
    )
}


DUPLICATES = 0.02
OUT_OF_ORDER = 0.10
LATE = 0.01
MALFORMED = 0.005
FUTURE = 0.0005

# Records drawn at once; also how far back, in records, a duplicate may reach.
_BLOCK = 16_384
# How far back, in arrival time, a duplicate may reach: well within the usual 10 minutes.
_DUPLICATE_REACH_SECONDS = 300
_DAY_MS = 86_400_000

_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-5", "channel-6")
_ITEMS = ("clock", "vase", "atlas", "lamp", "print", "chair", "globe", "radio")
_BID = (
    '{"event_id":"bid-%d-%08d","auction":%d,"bidder":%d,"price":%d.%02d,"channel":"%s",'
    '"url":"https://bids.example/%s/%d","event_time":"%sZ"}'
)


@dataclass(frozen=True)
class Slice:
    """Records in arrival order, without line feeds. ``now`` is when the last of them had arrived.
    No event time is later, except those that are dated days ahead."""

    lines: Sequence[bytes]
    now: datetime


@dataclass(frozen=True)
class _Block:
    """``plain`` marks the records that a later duplicate may repeat."""

    lines: list[bytes]
    plain: NDArray[np.bool_]


def bids(
    events: int, seed: int, start: datetime, rate: float, *, slice_events: int = 125_000
) -> Iterator[Slice]:
    """``events`` records in slices of ``slice_events`` (the last one may be shorter).

    ``start`` is aware, ``rate`` is in records per second of event time. Headgate compares event
    times with the modification time of their file, so give a file its slice's ``now`` or a later
    time.
    """
    if start.tzinfo is None or rate <= 0 or seed < 0 or slice_events < 1:
        raise ValueError("start must be aware, rate and slice_events positive, seed not negative")
    waiting: list[bytes] = []
    sent = 0
    for lines in _blocks(seed, start, rate):
        waiting += lines
        while sent < events and len(waiting) >= (size := min(slice_events, events - sent)):
            sent += size
            yield Slice(waiting[:size], start + timedelta(seconds=sent / rate))
            waiting = waiting[size:]
        if sent >= events:
            return


def _blocks(seed: int, start: datetime, rate: float) -> Iterator[list[bytes]]:
    start_ms = int(start.astimezone(UTC).timestamp() * 1000)
    before = _Block([], np.zeros(0, dtype=np.bool_))
    number = 0
    while True:
        before = _block(seed, number, start_ms, rate, before)
        yield before.lines
        number += 1


def _block(seed: int, number: int, start_ms: int, rate: float, before: _Block) -> _Block:
    # Only uniform draws: numpy keeps their bits, even if it changes its other distributions.
    draws = np.random.default_rng([seed, number]).random((8, _BLOCK))
    index = np.arange(number * _BLOCK, (number + 1) * _BLOCK)
    late, out_of_order, future, malformed, duplicate = _faults(draws[0])
    event_ms = start_ms + (index * 1000 / rate).astype(np.int64)
    event_ms[out_of_order] -= 1 + (draws[1][out_of_order] * 2_999).astype(np.int64)
    event_ms[late] -= 300_000 + (draws[1][late] * 600_000).astype(np.int64)
    event_ms[future] += _DAY_MS + (draws[1][future] * 30 * _DAY_MS).astype(np.int64)
    block = _Block(_lines(seed, index, event_ms, draws[2:]), ~(future | malformed | duplicate))

    kinds = tuple(KINDS.values())
    for i in np.flatnonzero(malformed).tolist():
        block.lines[i] = kinds[int(draws[1][i] * len(kinds))](block.lines[i])
    reach = max(1, min(_BLOCK, int(rate * _DUPLICATE_REACH_SECONDS)))
    for i in np.flatnonzero(duplicate).tolist():
        earlier = min(reach, i + len(before.lines))
        original = _original(block, before, i - 1 - int(draws[1][i] * earlier))
        if original is not None:
            block.lines[i] = original
    return block


def _faults(draw: NDArray[np.float64]) -> list[NDArray[np.bool_]]:
    """Which records are late, out of order, future, malformed, duplicates. No record has two
    faults."""
    shares = (LATE, OUT_OF_ORDER, FUTURE, MALFORMED, DUPLICATES)
    kind = np.searchsorted(np.cumsum(shares), draw, side="right")
    return [kind == n for n in range(len(shares))]


def _original(block: _Block, before: _Block, i: int) -> bytes | None:
    """The nearest plain record at or before ``i``; None at the very start of the stream."""
    while i >= -len(before.lines):
        holder = block if i >= 0 else before
        if holder.plain[i]:
            return holder.lines[i]
        i -= 1
    return None


def _lines(
    seed: int, index: NDArray[np.int64], event_ms: NDArray[np.int64], draws: NDArray[np.float64]
) -> list[bytes]:
    auction = 1000 + (draws[0] ** 2 * 1000).astype(np.int64)  # squared: some auctions get many bids
    bidder = 1 + (draws[1] * 20_000).astype(np.int64)
    cents = 100 + (draws[2] ** 3 * 1_000_000).astype(np.int64)
    channel = (draws[3] * len(_CHANNELS)).astype(np.int64)
    item = (draws[4] * len(_ITEMS)).astype(np.int64)
    page = (draws[5] * 10_000).astype(np.int64)
    times = np.datetime_as_string(event_ms.astype("datetime64[ms]"), unit="ms")
    rows = zip(
        [seed] * len(index),
        index.tolist(),
        auction.tolist(),
        bidder.tolist(),
        (cents // 100).tolist(),
        (cents % 100).tolist(),
        [_CHANNELS[c] for c in channel.tolist()],
        [_ITEMS[i] for i in item.tolist()],
        page.tolist(),
        times.tolist(),
        strict=True,
    )
    return "\n".join([_BID % row for row in rows]).encode("ascii").split(b"\n")


TABLE = "channels_sliding"
"""The gold table of the examples whose suite the bid breaks: its channel's average is
implausible."""


def outlier(at: datetime) -> Slice:
    """One bid that arrives ``at``."""
    bid = {
        "event_id": "bid-outlier",
        "auction": 1000,
        "bidder": 1,
        "price": 0.01,
        "channel": "fax",
        "url": "https://bids.example/vase/1",
        "event_time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return Slice([json.dumps(bid, separators=(",", ":")).encode()], at)
