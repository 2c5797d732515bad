"""The broker's settings, as the files that Kafka and Log4j read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

HOST = "127.0.0.1"
DATA = "data"
SERVER_LOG = "logs/server.log"

# One node, so one copy of everything; small internal topics; nothing waits for more members.
_ONE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # Relative to the folder, which the broker runs in: a comma in its path would separate two.
    "log.dirs": DATA,
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Retention goes by the records' own timestamps: events of last year would go in minutes.
    "log.retention.ms": "-1",
    # A killed broker cannot register again before its session has run out: 9 s by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # A quarter of the heap otherwise.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

LOG4J = f"""\
status = error
shutdownHook = disable
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
logger.settings.name = org.apache.kafka.common.config.AbstractConfig
logger.settings.level = warn
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {SERVER_LOG}
appender.file.filePattern = {SERVER_LOG}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}}{{UTC}}Z %p %m (%c{{1}})%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""

_USER = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Settings:
    """``properties`` are added to, and win over, those of :func:`server_properties`. With
    ``sasl_users`` (name to password) there is a second listener, at ``sasl_port``, that lets in
    these users alone, by SASL/PLAIN without TLS."""

    port: int
    controller_port: int
    sasl_port: int | None = None
    sasl_users: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def sasl_servers(self) -> str | None:
        return None if self.sasl_port is None else f"{HOST}:{self.sasl_port}"


def server_properties(settings: Settings) -> str:
    """``server.properties``. Raises ValueError for a user or password that it cannot hold."""
    listeners = {"PLAINTEXT": settings.port}
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    every = dict(_ONE_NODE)
    if settings.sasl_port is not None:
        listeners["SASL"] = settings.sasl_port
        protocols["SASL"] = "SASL_PLAINTEXT"
        every["listener.name.sasl.sasl.enabled.mechanisms"] = "PLAIN"
        every["listener.name.sasl.plain.sasl.jaas.config"] = _jaas(settings.sasl_users)
    advertised = _listeners(listeners)
    every["advertised.listeners"] = advertised
    every["listeners"] = f"{advertised},{_listeners({'CONTROLLER': settings.controller_port})}"
    every["listener.security.protocol.map"] = ",".join(f"{k}:{v}" for k, v in protocols.items())
    # Named here and not in the data, where `format --standalone` would write it: the port is
    # another one at each start.
    every["controller.quorum.voters"] = f"1@{HOST}:{settings.controller_port}"
    every |= settings.properties
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(every.items()))


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _jaas(users: Mapping[str, str]) -> str:
    for name, password in users.items():
        if not _USER.fullmatch(name):
            raise ValueError(f"{name!r}: a user's name is letters, digits, _ and -")
        if not password or not password.isprintable():
            raise ValueError(f"the password of {name} is empty or holds control characters")
    quoted = (
        'user_{}="{}"'.format(name, password.replace("\\", "\\\\").replace('"', '\\"'))
        for name, password in users.items()
    )
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return f"{' '.join([login, *quoted])};"


def _escaped(value: str) -> str:
    """A value as Java reads it back: Latin-1, with escapes for the rest."""
    units = value.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-16-be")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(c) if 32 <= c < 127 else f"\\u{c:04x}" for c in codes)
