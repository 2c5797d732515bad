"""The keys of a declaration's `metrics`."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.keys.key import YEAR, Key
from headgate.declaration.loopback import LOOPBACK

METRICS = Key(
    "metrics",
    "section",
    "Metrics that the running pipeline serves for Prometheus ([metrics](metrics.md)). You can "
    "change it at any time.",
    children=(
        Key(
            "port",
            "integer",
            "The driver serves `/metrics` at this port; without it, at none.",
            low=1,
            high=65535,
        ),
        Key(
            "host",
            "text",
            "The address to listen at. Any other than this machine's loopback needs `token_file`.",
            default=LOOPBACK,
        ),
        Key(
            "token_file",
            "text",
            "A file with the token that clients must send (`Authorization: Bearer …`). A relative "
            "path begins at the project's folder.",
        ),
        Key(
            "latency_within",
            "duration",
            "How long a record may take from its arrival to gold, before there is an alert.",
            default="5 minutes",
            low=timedelta(milliseconds=100),
            high=YEAR,
        ),
    ),
)
