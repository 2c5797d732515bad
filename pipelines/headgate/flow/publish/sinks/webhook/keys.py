"""The keys of the section ``webhook`` of a publication."""

from __future__ import annotations

from headgate.declaration.keys.key import Key
from headgate.flow.publish.sinks.webhook.declared import ATTEMPTS

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
