"""What a declaration says of Kafka topics that are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

StartAt = Literal["earliest", "latest"]
Isolation = Literal["read_committed", "read_uncommitted"]


@dataclass(frozen=True)
class KafkaSource:
    """Topics of a Kafka cluster: exactly one of ``topic`` and ``pattern`` is given.

    ``servers`` (host:port, comma separated) and ``options`` are resolved and may hold secrets:
    neither is in the repr. ``pattern`` is a regular expression that whole topic names match.
    ``start`` is where a partition that was never read begins: an end of it, a moment (aware UTC),
    or offsets of the partitions of ``topic``. Batches are counted in records. ``written`` has the
    values of keys that were given by placeholders, as the declaration writes them.
    """

    servers: str = field(repr=False)
    topic: str | None
    pattern: str | None
    start: StartAt | Mapping[int, int] | datetime
    max_per_batch: int = 100_000
    # Backpressure never shrinks a batch below this.
    min_per_batch: int = 1_000
    # A batch that took longer shrinks the next intake.
    batch_target: timedelta = timedelta(seconds=10)
    idle_after: timedelta = timedelta(minutes=5)
    # How long brokers that do not answer are waited for.
    unreachable_after: timedelta = timedelta(minutes=2)
    isolation: Isolation = "read_committed"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
