"""When arrived events were in gold. The times come from the log files of a gold table, after the
run, so that no reader runs while the jobs are measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable


@dataclass(frozen=True)
class Arrival:
    """``events`` arrived at ``at`` (seconds since 1970)."""

    at: float
    events: int


def shown(gold: Path) -> Iterator[tuple[float, int]]:
    """For each version of a gold table, when it was committed (seconds since 1970) and how many
    events its windows had: the sum of ``bids``."""
    for version in range(DeltaTable(str(gold)).version() + 1):
        yield (gold / f"_delta_log/{version:020d}.json").stat().st_mtime, events_of(gold, version)


def events_of(gold: Path, version: int | None = None) -> int:
    rows = pa.table(DeltaTable(str(gold), version=version).to_pyarrow_table(columns=["bids"]))
    return int(pc.sum(rows.column("bids")).as_py() or 0)


def latencies(gold: Path, arrivals: Sequence[Arrival]) -> list[float]:
    """Seconds from each arrival to the first version that has it. No event of the feed is late, a
    duplicate or invalid, and each is in one window, so the sums show which arrivals a version
    has."""
    versions = list(shown(gold))
    assert versions[-1][1] == sum(arrival.events for arrival in arrivals)
    found, place, sent = [], 0, 0
    for arrival in arrivals:
        sent += arrival.events
        while versions[place][1] < sent:
            place += 1
        found.append(versions[place][0] - arrival.at)
    return found
