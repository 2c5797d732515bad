"""The declared settings of Kafka topics that are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

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
