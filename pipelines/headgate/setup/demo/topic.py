"""Sends slices of records to a topic, keyed by auction, so that bids of an auction stay in
order."""

from __future__ import annotations

import re

from headgate.setup.broker.producing import produce
from headgate.setup.demo.feeding import Deliver
from headgate.setup.demo.generator import Slice

TOPIC = "bids"
PARTITIONS = 4
_AUCTION = re.compile(rb'"auction":(\d+)')


def into_topic(servers: str) -> Deliver:
    """A function that sends a slice, and waits until all its records are acknowledged. It raises
    HeadgateError."""

    def deliver(_: int, part: Slice) -> None:
        produce(servers, TOPIC, ((key_of(line), line) for line in part.lines))

    return deliver


def key_of(line: bytes) -> bytes | None:
    """The auction of a bid, also of a malformed one; None if it has none."""
    found = _AUCTION.search(line)
    return found[1] if found else None
