"""Malformed records: each function damages a valid bid line in one way.

A line is as `generator.py` writes it: ``event_id`` first, ``event_time`` last, no spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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
