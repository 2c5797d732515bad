"""Rebuilds: tables that are built beside the current ones and replace them in one commit.

A rebuild writes its data files into the folder of the current table, and its log into a folder
of its own. Readers follow the current log, so they see the old rows until the rebuild has processed
as many batches as the current table. Then a reset gives the current table exactly the files and the
state of the rebuild (``history.savepoints.resets``). One decision records the rebuild. After a
kill, the next driver continues it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from deltalake.exceptions import DeltaError

from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import BRONZE, GOLD, INPUTS, KINDS, SILVER, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.history.savepoints.resets import (
    Resets,
    ResetTarget,
    decide_reset,
    undeclared_tables,
    undeclared_targets,
    void_after_loss,
)
from headgate.lake.storage.documents import decoded, encoded
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.agreement import has_other_numbers
from headgate.lake.tables.decisions import REBUILD, ControlTable, Decisions, Position
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import inputs_of, processed_at
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

FOLDER = f"{CONTROL}/rebuild"


@dataclass(frozen=True)
class RebuildStep:
    """The batch id up to which the rebuild of a table is done, and that of each of its sources if
    it reads several."""

    table: str
    n: int
    inputs: Mapping[str, int] = field(default_factory=dict)

    def processed(self, graph: Graph) -> dict[str, int]:
        """As ``snapshot.processed``."""
        return processed_at(graph, self.table, self.n, self.inputs)


@dataclass(frozen=True)
class Rebuild:
    """The document of a decision. ``tables`` has the definitions of the rebuilt tables by path.
    ``generation`` is the one that they get when they are published. Their logs are in
    ``folder``."""

    folder: str
    generation: int
    tables: Mapping[str, str]
    why: str

    def table(self, layout: Layout, pipeline: str, path: str) -> Table:
        """The rebuild of a table."""
        return Table(layout.storage, path, pipeline=pipeline, log=f"{self.folder}/{path}")

    def still_declared(self, pipeline: Pipeline) -> frozenset[str]:
        """The tables whose definition in the rebuild is still the declared one."""
        declared = pipeline.definitions
        return frozenset(p for p, made_as in self.tables.items() if declared.get(p) == made_as)

    def steps(self, layout: Layout, pipeline: str) -> Iterator[RebuildStep]:
        """The progress of the tables that have a commit at every step."""
        for path in reversed(self.in_order()):
            if kind_of(path) in (BRONZE, SILVER, GOLD):
                table = self.table(layout, pipeline, path)
                state = table.refresh() if table.exists else State.empty(path)
                yield RebuildStep(path, state.n, inputs_of(state))

    def in_order(self) -> tuple[str, ...]:
        """The paths, each table before its upstream tables."""
        order = [*reversed(KINDS)]
        return tuple(sorted(self.tables, key=lambda path: order.index(kind_of(path))))


def begun_rebuild(decisions: Decisions) -> Rebuild | None:
    """The rebuild that is under way. A later rebuild takes its place, and after a reset it is void:
    it is published, or its tables have gone back since."""
    found = decisions.of(REBUILD)
    if not found:
        return None
    rebuild = decoded(found[-1].document, Rebuild)
    return None if rebuild.generation <= decisions.generation else rebuild


def continued_rebuild(decisions: Decisions, pipeline: Pipeline) -> Rebuild | None:
    """The rebuild under way, if it builds the tables as declared now."""
    found = begun_rebuild(decisions)
    if found is None:
        return None
    return found if found.still_declared(pipeline) == found.tables.keys() else None


def decide_rebuild(
    control: ControlTable, rebuild: Rebuild, position: Position, now: datetime
) -> None:
    """Decide that a rebuild begins. Any other rebuild becomes void. Raises CommitRefusedError,
    FencedError."""
    control.append(REBUILD, encoded(rebuild), position, now)
    failpoint("rebuild.recorded")


def remove_void_rebuilds(layout: Layout, control: Table, keep: Rebuild | None) -> None:
    """Remove the logs of void rebuilds. Vacuum removes their data files.

    Raises FencedError: a rebuild that looks void may belong to a newer driver.
    """
    kept = "" if keep is None else keep.folder
    for path in (f"{FOLDER}/{name}" for name in layout.storage.folders(FOLDER)):
        if path != kept:
            control.refresh()
            layout.storage.remove(path)


def publish_rebuild(
    layout: Layout,
    pipeline: Pipeline,
    rebuild: Rebuild,
    control: ControlTable,
    resets: Resets,
    position: Position,
    now: datetime,
) -> bool:
    """Decide on the publication of a rebuild, once it has processed all batches of the current
    tables. Each table then publishes its rebuild in one commit of its own, by
    ``Resets.carry_out``. Returns whether it was decided.

    Downstream tables that are no longer declared lose their positions.
    """
    asked = rebuild_targets(layout, pipeline, rebuild)
    if asked is None:
        return False
    failpoint("rebuild.ready")
    others = undeclared_tables(layout, pipeline)
    kept = undeclared_targets((table.name for table in others), asked)
    left = [table for table in others if table.name in kept]
    for table in left:
        table.fence(control.table.epoch)
    # The batch ids of a rebuilt bronze begin again.
    tables = asked | kept
    back_to = {name_of(path): None for path in tables if kind_of(path).numbers_batches}
    decisions = control.refresh()
    void = void_after_loss(decisions, back_to)
    decide_reset(control, tables, position, now, why=rebuild.why, void=void, back_to=back_to)
    resets.carry_out(left, now)
    return True


def rebuild_targets(
    layout: Layout, pipeline: Pipeline, rebuild: Rebuild
) -> dict[str, ResetTarget] | None:
    """The reset targets of a rebuild's tables, once it has processed all batches and operations of
    the current tables, and the gates of gold tables have validated just these versions; None before
    that.

    All silver and gold tables of a source are taken at the same batch id. They are read downstream
    tables first, so that none is ahead of its upstream, whatever other jobs do meanwhile.
    """
    graph = graph_of(pipeline)
    source = {path: graph.numbered_by(path).name for path in rebuild.tables}
    tables = [rebuild.table(layout, pipeline.name, path) for path in rebuild.in_order()]
    seen = {table.name: (table.version, table.state) for table in tables}
    reached: dict[str, int] = {}
    for path, (_, state) in seen.items():
        if kind_of(path).is_dense:
            reached[source[path]] = min(state.n, reached.get(source[path], state.n))
    found, taken = dict[str, ResetTarget](), dict[str, State]()
    for table in tables:
        version, newest = seen[table.name]
        n = reached.get(source[table.name], newest.n)
        commit = next(c for c in lineage(table, version) if c.state.n <= n)
        state, kind = commit.state, kind_of(table.name)
        if (kind.is_dense and state.n < n) or (kind == BRONZE and newest.n != n):
            return None
        if not _may_be_seen(pipeline, table.name, state):
            return None
        log = f"{rebuild.folder}/{table.name}"
        found[table.name] = ResetTarget(commit.version, state.files, rebuilt=log)
        taken[table.name] = state
    reread = {source[path] for path in taken if kind_of(path).numbers_batches}
    # The current tables stop at the batches that the rebuild has read.
    for state in (state for path, state in taken.items() if kind_of(path) == INPUTS):
        if any(n != reached.get(name, n) for name, n in inputs_of(state).items() if name in reread):
            return None
    for path, state in taken.items():
        current = _current(layout, pipeline.name, path)
        if has_other_numbers(graph, graph[path], current):
            # The batch ids cannot be compared: the rebuild has to be as far as it can be now.
            end = _current(layout, pipeline.name, graph.numbered_by(path).path)
            level = state.n >= end.n and state.operation >= current.operation
        else:
            level = _reaches(path, state, current, source[path] in reread)
        if not level:
            return None
    return found


def _current(layout: Layout, pipeline: str, path: str) -> State:
    return Table(layout.storage, path, pipeline=pipeline).refresh()


def _may_be_seen(pipeline: Pipeline, path: str, state: State) -> bool:
    """Whether the gate of a table has let a version of its rebuild pass, if it has a gate."""
    gold = pipeline.gold.get(name_of(path)) if kind_of(path) == GOLD else None
    if gold is None or gold.suite is None or not (state.n or state.operation):
        return True
    return GoldPayload.of(state).is_validated(state.n, state.operation)


def _reaches(path: str, rebuilt: State, current: State, is_reread: bool) -> bool:
    """Whether the rebuild of a table has everything that readers see in the current one.
    ``is_reread``: the bronze table of its source is rebuilt, too, so batch ids begin again at 1,
    and operations are not repeated."""
    if is_reread:
        if kind_of(path) != BRONZE:
            return True
        reached, wanted = (BronzePayload.of(each).offsets for each in (rebuilt, current))
        return all(reached.get(at, 0) >= wanted[at] for at in wanted)
    # An operation is a commit of its own: its gate may hold it, or another job still work on it.
    has_operations = rebuilt.operation >= current.operation
    return has_operations and (rebuilt.n >= current.n or not kind_of(path).is_dense)


def rebuild_files(
    layout: Layout, pipeline: str, control: ControlTable, path: str
) -> frozenset[str]:
    """The data files of a table's rebuild that is under way.

    They include those of all versions, because it is not known which version is published. No
    current table has them, and a vacuum must keep them.

    Call this before reading the current table: then files that are published in between are in one
    of the two.
    """
    rebuild = begun_rebuild(control.refresh())
    if rebuild is None or path not in rebuild.tables:
        return frozenset()
    table = rebuild.table(layout, pipeline, path)
    try:
        if not table.exists:
            return frozenset()
        return frozenset(file.path for commit in lineage(table) for file in commit.files)
    except (DeltaError, LogGapError, OSError):
        if begun_rebuild(control.refresh()) == rebuild:
            raise
        return frozenset()  # it was published or abandoned meanwhile
