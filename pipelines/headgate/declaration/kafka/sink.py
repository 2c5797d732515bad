"""The declared settings of a topic that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KafkaSink:
    """``servers`` (host:port, comma separated) and ``options`` are resolved and may contain
    secrets: neither is in the repr. ``written`` has the values of keys with placeholders, as the
    declaration writes them."""

    servers: str = field(repr=False)
    topic: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
