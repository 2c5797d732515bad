"""The section ``kafka`` of a source: its keys, and the settings that they declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from headgate.declaration.kafka.section import NO_INTERCEPTORS, OPTIONS, SERVERS
from headgate.declaration.keys.key import YEAR, Key

StartAt = Literal["earliest", "latest"]
OnTombstone = Literal["quarantine", "ignore"]
Isolation = Literal["read_committed", "read_uncommitted"]


@dataclass(frozen=True)
class KafkaSource:
    """Topics of a Kafka cluster. Exactly one of ``topic`` and ``pattern`` is given.

    ``servers`` (host:port, comma separated) and ``options`` are resolved and may contain secrets:
    neither is in the repr. ``pattern`` is a regular expression that matches whole topic names.
    ``start`` is where a new partition begins: its first or last offset, a moment (aware UTC), or
    offsets of the partitions of ``topic``. Batches are limited in records. ``written`` has the
    values of keys with placeholders, as the declaration writes them.
    """

    servers: str = field(repr=False)
    topic: str | None
    pattern: str | None
    start: StartAt | Mapping[int, int] | datetime
    max_per_batch: int = 100_000
    # Backpressure never shrinks a batch below this.
    min_per_batch: int = 1_000
    # A batch that took longer makes the next one smaller.
    batch_target: timedelta = timedelta(seconds=10)
    idle_after: timedelta = timedelta(minutes=5)
    # How long a run with `once` waits for brokers that do not answer. A stream waits for ever.
    unreachable_after: timedelta = timedelta(minutes=2)
    isolation: Isolation = "read_committed"
    # What happens to records without a value.
    tombstones: OnTombstone = "quarantine"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


_REFUSED_READING = {
    "bootstrap.servers": "use the key servers",
    "group.id": "positions are kept in bronze's commits, not by a consumer group",
    "auto.offset.reset": "use the key start",
    "enable.auto.commit": "positions are kept in bronze's commits, and nowhere else",
    "isolation.level": "use the key isolation",
    "key.deserializer": "records are read as bytes; use the key record",
    "value.deserializer": "records are read as bytes; use the key record",
    "interceptor.classes": NO_INTERCEPTORS,
}
KAFKA = Key(
    "kafka",
    "section",
    "Topics of a Kafka cluster. The value of a record is one JSON document. Give exactly one of "
    "`topic` and `pattern`.",
    one_of=("topic", "pattern"),
    children=(
        SERVERS,
        Key("topic", "topic", "The topic to read.", deployment=True),
        Key(
            "pattern",
            "pattern",
            "A regular expression: every topic whose whole name matches it is read.",
            deployment=True,
        ),
        Key(
            "start",
            "start",
            "Where the pipeline starts to read a partition on its first run: `earliest`, `latest`, "
            'the first record at or after a time (`"2026-11-20T00:00:00Z"`), or, with `topic`, '
            "offsets by partition (`{0: 1200, 1: 3400}`).",
            default="earliest",
            deployment=True,
        ),
        Key(
            "max_per_batch",
            "integer",
            "A micro-batch takes no more records than this.",
            default="100000",
            low=1,
            high=100_000_000,
            deployment=True,
        ),
        Key(
            "min_per_batch",
            "integer",
            "Backpressure never reduces a micro-batch below this many records. The default is at "
            "most `max_per_batch`.",
            default="1000",
            low=1,
            high=100_000_000,
            deployment=True,
        ),
        Key(
            "batch_target",
            "duration",
            "If a micro-batch takes longer than this, the next one is smaller.",
            default="10 s",
            low=timedelta(seconds=1),
            high=timedelta(hours=1),
            deployment=True,
        ),
        Key(
            "idle_after",
            "duration",
            "The watermark does not wait for a partition that delivered no record for this long "
            "while another one did.",
            default="5 minutes",
            low=timedelta(seconds=1),
            high=YEAR,
        ),
        Key(
            "unreachable_after",
            "duration",
            "How long `run --once` waits for brokers that do not answer. A pipeline that runs on "
            "tries again until they answer.",
            default="2 minutes",
            low=timedelta(seconds=1),
            high=timedelta(days=1),
            deployment=True,
        ),
        Key(
            "isolation",
            "choice",
            "Whether records of open and aborted transactions are read.",
            default="read_committed",
            choices=("read_committed", "read_uncommitted"),
        ),
        Key(
            "tombstones",
            "choice",
            "What happens to a record without a value, which deletes a key of a compacted topic. "
            "`quarantine`: it goes to quarantine with the reason `tombstone`. `ignore`: it stays "
            "in bronze alone, and silver counts it as filtered. You can change it at any time: it "
            "applies to records that are read from then on.",
            default="quarantine",
            choices=("quarantine", "ignore"),
        ),
        Key("options", "options", OPTIONS, refused=_REFUSED_READING),
    ),
)
