"""The secrets of a declaration, and their removal from texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from headgate.declaration.contracts.sink import sink_of
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kafka.values import SECRET_PATTERN, assigned_secrets
from headgate.declaration.model import Pipeline

_SHORTEST = 3  # shorter ones occur in any text


def secrets_of(pipeline: Pipeline) -> frozenset[str]:
    """The secrets of the sources and of the sinks."""
    read = (connector_of(each).secrets(each.reads) for each in pipeline.sources.values())
    written = (sink_of(each).secrets(each.sink) for each in pipeline.publish.values())
    return frozenset(chain.from_iterable((*read, *written)))


def secrets_in(options: Mapping[str, str]) -> Iterator[str]:
    """The texts in client properties that must not be shown: whole values, and the parts of values
    that are secret."""
    for name, value in options.items():
        found = [value] if re.search(SECRET_PATTERN, name) else []
        # A message may quote only a part of `Module required username="ann" password="...";`.
        for part in assigned_secrets(value):
            found += [part, re.sub(r"\\(.)", r"\1", part)]
        yield from (secret for secret in found if len(secret) >= _SHORTEST)


def without(secrets: Iterable[str], text: str) -> str:
    """``text`` with every secret replaced, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
