"""The keys that sources and sinks of Kafka share."""

from __future__ import annotations

from headgate.declaration.keys.key import Key

SERVERS = Key(
    "servers",
    "servers",
    "Bootstrap brokers: `host:port`, several separated by commas.",
    required=True,
    deployment=True,
)
OPTIONS = (
    "Client properties with the names of Kafka's Java client, such as `security.protocol`. A "
    "password or another secret must be a placeholder."
)
NO_INTERCEPTORS = "an interceptor could change records"
