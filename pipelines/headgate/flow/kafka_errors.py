"""The classes of Kafka's errors in the text of an error of Spark. The rest of the text may show the
properties of the client and its secrets."""

from __future__ import annotations

import re

_CLASS = re.compile(r"org\.apache\.kafka\.common\.(?:errors|config)\.(\w+)")


def kafka_errors(text: str) -> tuple[str, ...]:
    """The names of the classes without their packages, each once. Those of stack frames, which are
    no causes, are left out."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("at "))
    return tuple(dict.fromkeys(name for line in lines for name in _CLASS.findall(line)))
