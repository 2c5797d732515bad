"""The section ``webhook`` of a publication: its keys, and the settings that they declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.declaration.keys.key import Key

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


WEBHOOK = Key(
    "webhook",
    "section",
    "A receiver of HTTP requests, one for each row.",
    children=(
        Key(
            "url",
            "text",
            "The address. It may be a placeholder as a whole, and is then never shown.",
            required=True,
            deployment=True,
        ),
        Key(
            "headers",
            "headers",
            "Further headers. One with a name such as `Authorization` must be a placeholder.",
        ),
        Key(
            "secret",
            "text",
            "Signs each request with HMAC-SHA256. It must be a placeholder.",
            deployment=True,
        ),
        Key(
            "attempts",
            "integer",
            "How often a row that the receiver refuses is sent before it becomes a dead letter.",
            default=str(ATTEMPTS),
            low=1,
            high=20,
        ),
        Key(
            "allow_http",
            "boolean",
            "Allow `http://` to another machine: anyone in between can read and change the rows.",
            default="false",
        ),
    ),
)
