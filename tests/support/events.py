"""Readings as producers send them, good and bad, from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from tests.support.readings import NOON

MALFORMED: dict[str, bytes] = {
    "unparsable": b'{"id": "cut", "at": "2026-03-',
    "two documents": b'{"id": "a", "at": "2026-03-01T11:40:00Z"} {"id": "b"}',
    "not_an_object": b'["2026-03-01T11:40:00Z"]',
    "no id": b'{"site": "North", "at": "2026-03-01T11:33:00Z"}',
    "null id": b'{"id": null, "at": "2026-03-01T11:34:00Z"}',
    "missing_time": b'{"id": "timeless", "level": 3}',
    "unparsable_time": b'{"id": "yesterday", "at": "yesterday", "level": 3}',
    "wrong_type": b'{"id": "typed", "level": "many", "at": "2026-03-01T11:35:00Z"}',
    "wrong type ahead": b'{"id": "typed", "value": true, "at": "2026-03-01T11:34:30Z"}',
}


def reading(id_: str, at: datetime | str, **fields: Any) -> bytes:
    """One record. If ``at`` is a time, it is written in ISO format with Z."""
    time = at if isinstance(at, str) else at.isoformat().replace("+00:00", "Z")
    return json.dumps({"id": id_, **fields, "at": time}).encode()


def readings(count: int, seed: int) -> list[bytes]:
    """``count`` records in arrival order: some are out of order, late, repeated, repeated with
    other content, invalid and corrected later, future, stray (two days old) or malformed. Each of
    ``MALFORMED`` is added once."""
    chance = random.Random(seed)
    made: list[bytes] = []
    owed: list[bytes] = []
    for number, moment in zip(range(count), _moments(chance), strict=False):
        dice = chance.random()
        if dice < 0.08 and made:
            made.append(chance.choice(made))
        elif dice < 0.10 and made:
            made.append(_differing(chance.choice(made), chance))
        elif dice < 0.12:
            made.append(chance.choice(list(MALFORMED.values())))
        elif owed and dice > 0.97:
            made.append(owed.pop(chance.randrange(len(owed))))
        else:
            made.append(_reading(f"r-{number}", _shifted(moment, dice), chance))
            if chance.random() < 0.04:
                owed.append(made[-1])
                made[-1] = _failed(made[-1])
    for value in MALFORMED.values():
        made.insert(chance.randrange(len(made)), value)
    return made


def _moments(chance: random.Random) -> Iterator[datetime]:
    moment = NOON
    while True:
        moment += timedelta(microseconds=chance.randrange(6_000_000))
        yield moment


def _shifted(moment: datetime, dice: float) -> datetime:
    if dice < 0.14:
        return moment - timedelta(minutes=5 + 500 * (dice - 0.12))  # late
    if dice < 0.15:
        return moment + timedelta(hours=3)  # future
    if dice < 0.16:
        return moment - timedelta(days=2)  # a stray
    return moment - timedelta(seconds=10) if dice < 0.30 else moment


def _reading(id_: str, at: datetime, chance: random.Random) -> bytes:
    optional = {
        "site": chance.choice(["North", "SOUTH", "east", None]),
        "value": chance.choice([1, 2.5, 99.995, -3.25, "12.345", None]),
        "level": chance.choice([0, 3, 5, 7, 12, -15, None]),
        "weight": chance.choice([0.1, 1e-3, 5, None]),
        "ok": chance.choice([True, False, None]),
        "day": "2026-03-01",
    }
    return reading(id_, at, **{k: v for k, v in optional.items() if chance.random() < 0.9})


def _differing(value: bytes, chance: random.Random) -> bytes:
    """The same record with other bytes."""
    return value.replace(b"{", chance.choice([b"{ ", b'{"again": 1, ']), 1)


def _failed(value: bytes) -> bytes:
    """The same record with a field of the wrong type."""
    return value[:-1] + b', "level": "many"}'
