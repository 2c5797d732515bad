"""The freshness of a pipeline's tables, read from their commits; a restart does not change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, GOLD, INPUTS
from headgate.declaration.model import Pipeline, Step
from headgate.declaration.quantities import format_step
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.log import list_log, newest_commit
from headgate.lake.tables.log_history import LogHistory
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.state import State, time_of


@dataclass(frozen=True)
class SourceFreshness:
    """``clock`` is the watermark. ``arrived`` is when bronze last read a record: the start of the
    batch. None: there is no such time, or it is not known."""

    clock: datetime | None = None
    arrived: datetime | None = None


@dataclass(frozen=True)
class StepFreshness:
    """``step`` is that of a gold table. ``lacks_since`` is the start of the oldest batch that
    bronze has and the table lacks: its results may be as old as that. None if it lacks none."""

    step: Step
    lacks_since: datetime | None


@dataclass(frozen=True)
class InputFreshness:
    """Of the gold ``tables`` that read the same several sources. ``clock`` is their watermark, and
    ``holds`` the source that it is of, which is ``behind`` the one that is furthest. None and empty
    if there is none yet. ``idle`` are the sources for which they do not wait."""

    tables: tuple[str, ...]
    clock: datetime | None
    holds: str
    behind: timedelta | None
    idle: tuple[str, ...]

    def document(self, now: datetime) -> dict[str, Any]:
        """As ``Freshness.document``."""
        return {
            "tables": [*self.tables],
            "watermark": _since(self.clock, now),
            "held_by": self.holds or None,
            "behind_seconds": self.behind.total_seconds() if self.behind else 0.0,
            "idle": [*self.idle],
        }


@dataclass(frozen=True)
class Freshness:
    """``gold`` is when each gold table last changed: folded a row or made one final. That is the
    start of a batch; None: there is no such time, or it is not known. ``sources`` are by name, and
    so are ``steps``, of the gold tables that do not take one with every batch. ``inputs`` are of
    the gold tables that read several sources."""

    gold: Mapping[str, datetime | None]
    sources: Mapping[str, SourceFreshness] = field(default_factory=dict)
    steps: Mapping[str, StepFreshness] = field(default_factory=dict)
    inputs: Sequence[InputFreshness] = ()

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
            "steps": {
                table: {
                    "step": format_step(each.step),
                    "lacks_since": _since(each.lacks_since, now),
                }
                for table, each in self.steps.items()
            },
            **({"inputs": [each.document(now) for each in self.inputs]} if self.inputs else {}),
            **(next(iter(sources.values())) if len(sources) == 1 else {"sources": sources}),
        }


def freshness(layout: Layout, declared: Pipeline) -> Freshness:
    """Read from the last commit of each bronze and gold table, and, for a table with steps, from a
    few commits of bronze.

    Raises LogGapError if a log is damaged.
    """
    sources = {name: source_freshness(layout, name) for name in declared.sources}
    return Freshness(
        gold={name: _moment(_state(layout, GOLD.path(name)).changed_at) for name in declared.gold},
        sources=sources,
        inputs=tuple(_inputs(layout, declared, sources)),
        steps={
            name: StepFreshness(each.step, _lacks_since(layout, declared, name))
            for name, each in declared.gold.items()
            if each.step is not None
        },
    )


def _inputs(
    layout: Layout, declared: Pipeline, sources: Mapping[str, SourceFreshness]
) -> Iterator[InputFreshness]:
    graph = graph_of(declared)
    for log in graph.of(INPUTS):
        decisions = ControlTable.of(layout.storage, declared.name).refresh()
        payload = InputsPayload.of(_state(layout, log.path))
        of = (node.name for node in graph.of(GOLD) if graph.numbered_by(node.path) == log)
        clocks = {name: sources[name].clock for name in graph.sources_of(log.path)}
        furthest = max((each for each in clocks.values() if each is not None), default=None)
        held = clocks.get(payload.holds)
        yield InputFreshness(
            tuple(of),
            _moment(payload.watermark),
            payload.holds,
            None if held is None or furthest is None else furthest - held,
            decisions.idle(log.name),
        )


def _lacks_since(layout: Layout, declared: Pipeline, gold: str) -> datetime | None:
    n = _state(layout, path := GOLD.path(gold)).n
    bronze = layout.storage.at(graph_of(declared).numbered_by(path).path)
    if (newest := newest_commit(bronze)) is None or newest.state.n <= n:
        return None
    history = LogHistory(bronze, list_log(bronze).oldest)
    missing = history.following(newest.version, n)
    return None if missing is None else time_of(missing.state.at)


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
