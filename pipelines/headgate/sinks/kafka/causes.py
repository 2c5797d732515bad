"""The classes of Kafka's errors in the text of an error of Spark. The rest of the text may show the
properties of the client and its secrets."""

from __future__ import annotations

import re

_CLASS = re.compile(r"org\.apache\.kafka\.common\.(?:errors|config)\.(\w+)")


def kafka_errors(text: str) -> tuple[str, ...]:
    """The names of the classes without their packages, each once."""
    return tuple(dict.fromkeys(_CLASS.findall(text)))
