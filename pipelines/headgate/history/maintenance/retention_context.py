"""What other parts of a pipeline still need of a table: its readers, savepoints and rebuilds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import CONTROL, GOLD, PUBLICATION, kind_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.history.savepoints.errors import ResetOpenError
from headgate.history.savepoints.holds import savepoints_and_held
from headgate.history.savepoints.rebuilds import begun_rebuild, rebuild_files
from headgate.history.savepoints.resets import last_reset_reason, tables_awaiting_reset
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import UnreadableSavepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import ConsistentSnapshot, followed_by, snapshot


class NotLevelError(HeadgateError, code=exit_codes.LOG_GAP):
    """A savepoint is damaged, so it is unknown what must be kept."""


@dataclass(frozen=True)
class RetentionContext:
    """``snapshot`` has the positions of the tables. ``published`` has, by the path of a table, the
    log versions up to which its rows are published, ``followed`` those up to which rollups have
    followed it. ``ends`` are the batch ids of each source at
    which a step of a stage ends. ``is_open`` says whether a table that is not declared awaits a
    reset. ``processed`` has the batch id of each source that all its tables have processed,
    rebuilds included. ``rebuilt`` returns the files of the rebuild of a table, by its path."""

    snapshot: ConsistentSnapshot
    savepoints: tuple[Savepoint, ...]
    published: Mapping[str, tuple[int, ...]]
    followed: Mapping[str, tuple[int, ...]]
    ends: Mapping[str, frozenset[int]]
    is_open: bool
    processed: Mapping[str, int]
    rebuilt: Callable[[str], frozenset[str]]

    def n(self, path: str) -> int:
        """The batch id that all tables of the source of a table have processed. The source of a
        table that is not declared any more is unknown, so all tables count."""
        if (source := self._numbered_by(path)) is not None:
            return self.processed.get(source, 0)
        tables = self.snapshot.tables
        return min((*self.processed.values(), *(at.n for p, at in tables.items() if _counts(p))))

    def saved_n(self, savepoint: Savepoint, path: str) -> int:
        """As ``n``, at a savepoint."""
        source = self._numbered_by(path)
        tables = [(p, at) for p, at in savepoint.tables.items() if _counts(p)]
        saved = [at.n for p, at in tables if source in (None, self._numbered_by(p))]
        saved += [at.inputs[source] for _, at in tables if source and source in at.inputs]
        return min(saved, default=0)

    def boundaries(self, path: str) -> tuple[int, ...]:
        """The batch ids of the source of a table at which a step of a stage ends."""
        source = self._numbered_by(path)
        found = (each for name, each in self.ends.items() if source in (None, name))
        return tuple(sorted({n for each in found for n in each}))

    def _numbered_by(self, path: str) -> str | None:
        graph = self.snapshot.graph
        has_source = path in graph and kind_of(path) != CONTROL
        return graph.numbered_by(path).name if has_source else None


def _counts(path: str) -> bool:
    """Whether a table has a commit for each batch of its source."""
    return kind_of(path).numbers_batches or kind_of(path).is_dense


def read_context(layout: Layout, pipeline: Pipeline) -> RetentionContext:
    """Raises HeadgateError if there are no tables, ResetOpenError if a declared table awaits a
    reset, LogGapError if a log is damaged, NotLevelError if a savepoint is damaged."""
    control, found = ControlTable.of(layout.storage, pipeline.name), snapshot(layout, pipeline)
    waiting = tables_awaiting_reset(found)
    if declared := pipeline.definitions.keys() & waiting:
        raise ResetOpenError(pipeline.name, declared, last_reset_reason(found))
    decisions = found.decisions
    rebuild = begun_rebuild(decisions)
    processed = found.n
    for step in rebuild.steps(layout, pipeline.name) if rebuild else ():
        # The source of a table that is not declared any more may be any.
        is_declared = step.table in found.graph
        of = {step.table: step.processed(found.graph)} if is_declared else {}
        for name, n in of.get(step.table, dict.fromkeys(processed, step.n)).items():
            processed[name] = min(processed.get(name, 0), n)
    return RetentionContext(
        snapshot=found,
        savepoints=all_savepoints(layout),
        published=dict(_published(found, pipeline)),
        followed=_followed(found, pipeline),
        ends={name: decisions.ends(name) for name in found.numbering},
        is_open=bool(waiting),
        processed=processed,
        rebuilt=partial(rebuild_files, layout, pipeline.name, control),
    )


def all_savepoints(layout: Layout) -> tuple[Savepoint, ...]:
    """All savepoints, and the versions that backfills and copies read now. Raises NotLevelError if
    a savepoint is damaged, because what it needs is then unknown."""
    found: list[Savepoint] = []
    for each in savepoints_and_held(layout):
        if isinstance(each, UnreadableSavepoint):
            raise NotLevelError(
                f"savepoint {each.id} is damaged ({each.why}): what it needs is unknown",
                remedy="put it back from a backup, or forget it: "
                + pipeline_command("savepoint delete", each.id),
            )
        found.append(each)
    return tuple(found)


def _published(
    found: ConsistentSnapshot, pipeline: Pipeline
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A publication that never ran needs the table from its first commit. One of gate events needs
    none of it: the events are documents."""
    by_table: dict[str, tuple[int, ...]] = {}
    for node in graph_of(pipeline).of(PUBLICATION):
        if pipeline.publish[node.name].layer == "gate":
            continue
        at = found.tables.get(node.path)
        version = PublicationPayload.of(at.state).version if at else 0
        for path in node.upstream:
            by_table[path] = (*by_table.get(path, ()), version)
    yield from by_table.items()


def _followed(found: ConsistentSnapshot, pipeline: Pipeline) -> dict[str, tuple[int, ...]]:
    by_table: dict[str, tuple[int, ...]] = {}
    for name, table in pipeline.gold.items():
        if table.reads is None:
            continue
        rollup, above = (found.tables.get(GOLD.path(each)) for each in (name, table.reads))
        if rollup is not None and above is not None:
            # A rollup that can no longer follow has to be rebuilt, and needs nothing until then.
            with suppress(LogGapError):
                version = followed_by(above, rollup).version
                path = GOLD.path(table.reads)
                by_table[path] = (*by_table.get(path, ()), version)
    return by_table
