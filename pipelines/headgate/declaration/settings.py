"""The settings of a pipeline beside its tables: schedules, limits, and what it serves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from headgate.declaration.loopback import LOOPBACK


@dataclass(frozen=True)
class SavepointSchedule:
    """How often a running pipeline takes a savepoint, and which are kept: the newest ``keep`` and
    those younger than ``keep_for``."""

    every: timedelta
    keep: int = 5
    keep_for: timedelta = timedelta(days=7)


@dataclass(frozen=True)
class CircuitBreaker:
    """Publications pause while more than the share ``refused_above`` of the records of the newest
    ``batches`` is quarantined or rejected, or while these batches have fewer than ``records_below``
    records. None for no limit."""

    refused_above: float | None = None
    records_below: int | None = None
    batches: int = 10


@dataclass(frozen=True)
class BackfillSchedule:
    """Airflow computes gold again in intervals of the length ``every``, and compares the rows.
    ``mode`` says what else a run does, and ``publish`` what happens to rows that differ
    (``keys.airflow``)."""

    every: timedelta
    mode: Literal["verify", "late", "rebuild"] = "verify"
    publish: Literal["when_equal", "always", "after_approval"] = "when_equal"


@dataclass(frozen=True)
class MetricsSettings:
    """The driver serves metrics at ``host`` and ``port``; without a port, it serves none. Clients
    send the token in ``token_file``; None if they need no token. ``latency_within`` is the limit
    for the time from arrival to gold; None for the default."""

    port: int | None = None
    host: str = LOOPBACK
    token_file: Path | None = None
    latency_within: timedelta | None = None
