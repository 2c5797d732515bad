"""The declared settings of a receiver of requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ATTEMPTS = 8


@dataclass(frozen=True)
class WebhookSink:
    """``url``, ``headers`` and ``secret`` are resolved and may be secret: none is in the repr.
    ``written`` is the url as the declaration writes it. ``hidden`` are the texts that must not be
    shown. ``attempts`` is how often a row is sent before it becomes a dead letter."""

    url: str = field(repr=False)
    written: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str | None = field(default=None, repr=False)
    attempts: int = ATTEMPTS
    hidden: tuple[str, ...] = field(default=(), repr=False, compare=False)
