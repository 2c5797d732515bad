"""A seeded stream of persons, auctions and bids with the shapes of Nexmark, as JSON lines.

Of 50 events, the first is a person, the next three are auctions, and 46 are bids. Event ``n`` has
the time ``start + n / rate``, in milliseconds, and arrives up to ``disorder`` events later than its
place. After each ``busy`` events, nothing happens for ``pause``. Ids rise with events.

Half of the bids are for one hot auction, three of four by one hot bidder, three of four auctions by
one hot seller; these change with each hundred auctions or persons. The others are for auctions and
by persons of late, some of which come only afterwards. An auction is open for as long as a hundred
auctions take to come, on average, and for twice as long at most. Prices are spread evenly over six
powers of ten.

The same stream gives the same bytes, for any number of events and any size of slices.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.setup.demo.generator import Slice

PERSON, AUCTION, BID = range(3)
ROUND, AUCTIONS = 50, 3
"""Events of a round, and how many of them are auctions. One is a person."""
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT = 100
"""A hot auction, seller or bidder is the first or second of so many."""
OPEN_AUCTIONS, ACTIVE_PERSONS = 100, 1000
AHEAD = 10
"""Events name auctions and persons that are so many ids ahead."""
DIGITS = 6

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Bend", "Boise", "Cheyenne", "Kent", "Phoenix", "Portland", "Redmond", "Seattle")
FIRST_NAMES = ("Ann", "Ben", "Cem", "Dee", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jo", "Kim")
LAST_NAMES = ("Abel", "Brandt", "Costa", "Diaz", "Eng", "Fox", "Gray", "Holm", "Ito")

SIZES = {PERSON: 100, AUCTION: 300, BID: 40}
"""How many letters the column ``extra`` has, on average."""

_BLOCK = ROUND * 320  # events drawn at once
_DRAWS = 12
_LETTERS = 1 << 16

Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """``start`` is aware, ``rate`` is in events per second of event time, ``disorder`` and ``busy``
    are in events. Raises ValueError for values that make no stream."""

    seed: int
    start: datetime
    rate: float
    disorder: int = 0
    busy: int = 1 << 62
    pause: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.rate <= 0 or self.busy < 1:
            raise ValueError("start must be aware, rate and busy positive")
        if self.seed < 0 or self.disorder < 0 or self.pause < timedelta(0):
            raise ValueError("seed, disorder and pause must not be negative")

    @property
    def longest_auction(self) -> timedelta:
        return timedelta(milliseconds=1 + 2 * self._auction_ms)

    def slices(self, events: int, slice_events: int) -> Iterator[Slice]:
        """``events`` events in files of ``slice_events``; the last one may be shorter. No event is
        later than ``now`` of its slice."""
        lines = self.lines()
        for first in range(0, events, slice_events):
            size = min(slice_events, events - first)
            last = first + size - 1
            before_pause = (last // self.busy + 1) * self.busy - 1
            now = _at(self._time_ms(min(last + self.disorder, before_pause)))
            yield Slice([*islice(lines, size)], now)

    def lines(self) -> Iterator[bytes]:
        """All events, in the order of arrival. There is no last one."""
        letters = _letters(self.seed)
        number = 0
        while True:
            draws = np.random.default_rng([self.seed, number]).random((_DRAWS, _BLOCK))
            first = number * _BLOCK
            numbers = np.arange(first, first + _BLOCK)
            # No event leaves its block, or is behind the pause after it.
            places = np.lexsort((numbers + draws[-1] * self.disorder, numbers // self.busy))
            of_events = draws[:-1].T.tolist()
            for place in places.tolist():
                event = self._event(first + place, of_events[place], letters)
                yield json.dumps(event, separators=(",", ":")).encode()
            number += 1

    @property
    def _auction_ms(self) -> int:
        """How long an auction is open on average."""
        return int(OPEN_AUCTIONS * ROUND / AUCTIONS / self.rate * 1000)

    def _time_ms(self, number: int) -> int:
        paused = number // self.busy * (self.pause // timedelta(milliseconds=1))
        return int(self.start.timestamp() * 1000) + int(number * 1000 / self.rate) + paused

    def _event(self, number: int, draw: list[float], letters: str) -> dict[str, Any]:
        epoch, place = divmod(number, ROUND)
        time = self._time_ms(number)
        if place == 0:
            kind, of_kind = "person", _person(epoch, draw, letters)
        elif place <= AUCTIONS:
            last = epoch * AUCTIONS + place - 1
            expires = time + 1 + int(draw[0] * 2 * self._auction_ms)
            kind, of_kind = "auction", _auction(last, epoch, expires, draw, letters)
        else:
            kind, of_kind = "bid", _bid(epoch * AUCTIONS + AUCTIONS - 1, epoch, draw, letters)
        type_ = {"person": PERSON, "auction": AUCTION, "bid": BID}[kind]
        return {"event_type": type_, kind: of_kind, "dateTime": _iso(time)}


def _person(number: int, draw: list[float], letters: str) -> dict[str, Any]:
    first, last = _one(FIRST_NAMES, draw[0]), _one(LAST_NAMES, draw[1])
    return {
        "id": FIRST_ID + number,
        "name": f"{first} {last}",
        "emailAddress": f"{_text(letters, draw[2], 6)}@{_text(letters, draw[3], 5)}.com",
        "creditCard": " ".join(f"{int(share * 10_000):04}" for share in draw[4:8]),
        "city": _one(CITIES, draw[8]),
        "state": _one(STATES, draw[9]),
        "extra": _extra(PERSON, draw[10], letters),
    }


def _auction(
    number: int, persons: int, expires: int, draw: list[float], letters: str
) -> dict[str, Any]:
    first = _price(draw[1])
    seller = persons // HOT * HOT if draw[2] < 0.75 else _active(persons, draw[3])
    return {
        "id": FIRST_ID + number,
        "itemName": _text(letters, draw[4], 3 + int(draw[5] * 17)),
        "description": _text(letters, draw[6], 3 + int(draw[7] * 97)),
        "initialBid": first,
        "reserve": first + _price(draw[8]),
        "expires": _iso(expires),
        "seller": FIRST_ID + seller,
        "category": FIRST_CATEGORY + int(draw[9] * CATEGORIES),
        "extra": _extra(AUCTION, draw[10], letters),
    }


def _bid(auctions: int, persons: int, draw: list[float], letters: str) -> dict[str, Any]:
    """``auctions`` and ``persons`` are the numbers of the last ones before the bid."""
    if draw[0] < 0.5:
        auction = auctions // HOT * HOT
    else:
        first = max(auctions - OPEN_AUCTIONS, 0)
        auction = first + int(draw[1] * (auctions - first + 1 + AHEAD))
    # Not the hot seller.
    bidder = persons // HOT * HOT + 1 if draw[2] < 0.75 else _active(persons, draw[3])
    channel, url = _channel(draw[5], letters)
    return {
        "auction": FIRST_ID + auction,
        "bidder": FIRST_ID + bidder,
        "price": _price(draw[4]),
        "channel": channel,
        "url": url,
        "extra": _extra(BID, draw[10], letters),
    }


def _active(last: int, share: float) -> int:
    """The number of one of the last persons, or of one of the next."""
    known = min(last + 1, ACTIVE_PERSONS)
    return last + 1 - known + int(share * (known + AHEAD))


def _channel(share: float, letters: str) -> tuple[str, str]:
    """Half of the bids are in one of the hot channels. Of the other channels, one of ten has an
    address without its id."""
    if share < 0.5:
        channel = _one(HOT_CHANNELS, share * 2)
        return channel, _url(HOT_CHANNELS.index(channel), letters)
    number = int((share - 0.5) * 2 * CHANNELS)
    url = _url(len(HOT_CHANNELS) + number, letters)
    return f"channel-{number}", url if number % 10 == 0 else f"{url}&channel_id={number * 7919}"


def _url(number: int, letters: str) -> str:
    """An address of its own, with three folders."""
    at = number * 6 % (_LETTERS - 20)
    folders = (letters[at : at + 4], letters[at + 5 : at + 8], letters[at + 9 : at + 14])
    return f"https://www.nexmark.com/{'/'.join(folders)}/item.htm?query=1"


def _price(share: float) -> int:
    """In cents."""
    return round(math.pow(10, share * DIGITS) * 100)


def _extra(kind: int, share: float, letters: str) -> str:
    """Up to a fifth shorter or longer than on average."""
    return _text(letters, share, int(SIZES[kind] * (0.8 + 0.4 * (share * 997 % 1))))


def _text(letters: str, share: float, length: int) -> str:
    at = int(share * (_LETTERS - length))
    return letters[at : at + length]


def _letters(seed: int) -> str:
    """Text from which each text of a stream is cut."""
    draws = np.random.default_rng(seed).random(_LETTERS)
    return bytes((97 + (draws * 26).astype(np.uint8)).tolist()).decode()


def _one(of: tuple[str, ...], share: float) -> str:
    return of[int(share * len(of))]


def _at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def _iso(time_ms: int) -> str:
    return _at(time_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
