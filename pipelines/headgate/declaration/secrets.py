"""The secrets that a declaration was given, and texts without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from headgate.declaration.kafka.values import SECRET_PATTERN
from headgate.declaration.model import Pipeline

_SHORTEST = 3  # shorter ones are in every text
# Of `Module required username="ann" password="...";` a message may quote a part alone.
_ASSIGNED = re.compile(
    r"""(?:password|passphrase|secret)\w*\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;,"']+))""",
    re.IGNORECASE,
)


def secrets_of(pipeline: Pipeline) -> frozenset[str]:
    """Those of the source and of the topics that are written."""
    kafka = [pipeline.source.kafka] if pipeline.source.kafka else []
    options = [source.options for source in kafka]
    options += [publication.sink.options for publication in pipeline.publish.values()]
    return frozenset(secret for each in options for secret in secrets_in(each))


def secrets_in(options: Mapping[str, str]) -> Iterator[str]:
    """What of client properties must not be shown, whole and in the parts that hold a secret."""
    for name, value in options.items():
        found = [value] if re.search(SECRET_PATTERN, name) else []
        for quoted, single, bare in _ASSIGNED.findall(value):
            part = quoted or single or bare
            found += [part, re.sub(r"\\(.)", r"\1", part)]
        yield from (secret for secret in found if len(secret) >= _SHORTEST)


def without(secrets: Iterable[str], text: str) -> str:
    """``text`` with every secret replaced, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
