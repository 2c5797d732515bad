"""The freshness of a pipeline's tables, read from their commits; a restart does not change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headgate.declaration.kinds import BRONZE, GOLD
from headgate.declaration.model import Pipeline
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.log import newest_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State, time_of


@dataclass(frozen=True)
class SourceFreshness:
    """``clock`` is the watermark. ``arrived`` is when bronze last read a record: the start of the
    batch. None: there is no such time, or it is not known."""

    clock: datetime | None = None
    arrived: datetime | None = None


@dataclass(frozen=True)
class Freshness:
    """``gold`` is when each gold table last changed: folded a row or made one final. That is the
    start of a batch; None: there is no such time, or it is not known. ``sources`` are by name."""

    gold: Mapping[str, datetime | None]
    sources: Mapping[str, SourceFreshness] = field(default_factory=dict)

    @property
    def changed(self) -> datetime | None:
        """When any gold table last changed."""
        return max((at for at in self.gold.values() if at is not None), default=None)

    def document(self, now: datetime) -> dict[str, Any]:
        """Plain values: each moment in ISO 8601, with the seconds from then to ``now``. The moments
        of several sources are in ``sources``."""
        sources = {
            name: {
                "watermark": _since(source.clock, now),
                "last_record": _since(source.arrived, now),
            }
            for name, source in self.sources.items()
        }
        return {
            "gold_changed": _since(self.changed, now),
            "gold": {table: _since(at, now) for table, at in self.gold.items()},
            **(next(iter(sources.values())) if len(sources) == 1 else {"sources": sources}),
        }


def freshness(layout: Layout, declared: Pipeline) -> Freshness:
    """Read from the last commit of each bronze and gold table.

    Raises LogGapError if a log is damaged.
    """
    return Freshness(
        gold={name: _moment(_state(layout, GOLD.path(name)).changed_at) for name in declared.gold},
        sources={name: source_freshness(layout, name) for name in declared.sources},
    )


def source_freshness(layout: Layout, source: str) -> SourceFreshness:
    """Read from the last commit of a source's bronze. Raises LogGapError if its log is damaged."""
    bronze = _state(layout, BRONZE.path(source))
    return SourceFreshness(_moment(BronzePayload.of(bronze).watermark), _moment(bronze.changed_at))


def _state(layout: Layout, path: str) -> State:
    commit = newest_commit(layout.storage.at(path))
    return State.empty(path) if commit is None else commit.state


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else time_of(micros)


def _since(at: datetime | None, now: datetime) -> dict[str, Any] | None:
    if at is None:
        return None
    return {"at": at.isoformat(), "seconds": round((now - at).total_seconds(), 3)}
