"""Rebuilds: tables that are built beside the current ones and replace them in one commit.

A rebuild writes its data files into the folder of the current table, and its log into a folder
of its own. Readers follow the current log, so they see the old rows until the rebuild has processed
as many batches as the current table. Then a reset gives the current table exactly the files and the
state of the rebuild (``history.savepoints.resets``). One document records the rebuild. After a
kill, the next driver continues it; without the document there is no rebuild.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from deltalake.exceptions import DeltaError

from headgate.declaration.kinds import BRONZE, GOLD, KINDS, SILVER, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.history.savepoints.resets import (
    Resets,
    ResetTarget,
    intend_reset,
    undeclared_tables,
    undeclared_targets,
)
from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

DOCUMENT = Layout.document("rebuild")
FOLDER = f"{CONTROL}/rebuild"


@dataclass(frozen=True)
class RebuildStep:
    """The batch id up to which the rebuild of a table is done."""

    table: str
    n: int


@dataclass(frozen=True)
class Rebuild:
    """``tables`` has the definitions of the rebuilt tables by path. ``generation`` is the one that
    they get when they are published. Their logs are in ``folder``."""

    folder: str
    generation: int
    tables: Mapping[str, str]
    why: str
    at: datetime

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
                yield RebuildStep(path, table.refresh().n if table.exists else 0)

    def in_order(self) -> tuple[str, ...]:
        """The paths, each table before its upstream tables."""
        order = [*reversed(KINDS)]
        return tuple(sorted(self.tables, key=lambda path: order.index(kind_of(path))))


def begun_rebuild(layout: Layout, generation: int) -> Rebuild | None:
    """The rebuild that is under way, for a bronze table of some generation.

    A rebuild that was begun at a lower generation is void: tables were reset since. Raises
    DamagedDocumentError.
    """
    found = read_value(layout.storage, DOCUMENT, Rebuild)
    return None if found is None or found.generation <= generation else found


def continued_rebuild(layout: Layout, pipeline: Pipeline, generation: int) -> Rebuild | None:
    """The rebuild under way, if it builds the tables as declared now."""
    found = begun_rebuild(layout, generation)
    if found is None:
        return None
    return found if found.still_declared(pipeline) == found.tables.keys() else None


def record_rebuild(layout: Layout, rebuild: Rebuild) -> None:
    """Record that a rebuild is under way. Any other rebuild becomes void."""
    write_document(layout.storage, DOCUMENT, encoded(rebuild))


def remove_void_rebuilds(layout: Layout, bronze: Table, keep: Rebuild | None) -> None:
    """Remove the logs of void rebuilds. Vacuum removes their data files.

    Raises FencedError: a rebuild that looks void may belong to a newer driver.
    """
    kept = "" if keep is None else keep.folder
    void = [f"{FOLDER}/{name}" for name in layout.storage.folders(FOLDER)]
    for path in ([] if keep else [DOCUMENT]) + [path for path in void if path != kept]:
        bronze.refresh()
        layout.storage.remove(path)


def publish_rebuild(
    layout: Layout, pipeline: Pipeline, rebuild: Rebuild, resets: Resets, now: datetime
) -> bool:
    """Request the publication of a rebuild, once it has processed all batches of the current
    tables. The request is one fenced commit on bronze. Each table then publishes its rebuild in one
    commit of its own, by ``Resets.carry_out``. Returns whether the publication was requested.

    Downstream tables that are no longer declared lose their positions.
    """
    asked = rebuild_targets(layout, pipeline, rebuild)
    # Only the last intent is ever read, so an open intent is carried out first.
    if asked is None or any(map(resets.awaits, tables_of(layout, pipeline.name))):
        return False
    failpoint("rebuild.ready")
    bronze = resets.bronze
    others = undeclared_tables(layout, pipeline)
    kept = undeclared_targets((table.name for table in others), asked)
    left = [table for table in others if table.name in kept]
    for table in left:
        table.fence(bronze.epoch)
    reread = asked.pop(bronze.name, None)
    intend_reset(bronze, asked | kept, now, why=rebuild.why, reread=reread)
    resets.carry_out(left, now)
    return True


def rebuild_targets(
    layout: Layout, pipeline: Pipeline, rebuild: Rebuild
) -> dict[str, ResetTarget] | None:
    """The reset targets of a rebuild's tables, once it has processed all batches and operations of
    the current tables, and the gates of gold tables have validated just these versions; None before
    that.

    All silver and gold tables are taken at the same batch id. They are read downstream tables
    first, so that none is ahead of its upstream, whatever other jobs do meanwhile.
    """
    tables = [rebuild.table(layout, pipeline.name, path) for path in rebuild.in_order()]
    seen = {table.name: (table.version, table.state) for table in tables}
    n = min(state.n for path, (_, state) in seen.items() if kind_of(path).is_dense)
    found, taken = dict[str, ResetTarget](), dict[str, State]()
    for table in tables:
        version, newest = seen[table.name]
        commit = next(c for c in lineage(table, version) if c.state.n <= n)
        state, kind = commit.state, kind_of(table.name)
        if (kind.is_dense and state.n < n) or (kind == BRONZE and newest.n != n):
            return None
        if not _may_be_seen(pipeline, table.name, state):
            return None
        log = f"{rebuild.folder}/{table.name}"
        found[table.name] = ResetTarget(commit.version, state.files, rebuilt=log)
        taken[table.name] = state
    return found if _reaches(layout, pipeline.name, taken) else None


def _may_be_seen(pipeline: Pipeline, path: str, state: State) -> bool:
    """Whether the gate of a table has let a version of its rebuild pass, if it has a gate."""
    gold = pipeline.gold.get(name_of(path)) if kind_of(path) == GOLD else None
    if gold is None or gold.suite is None or not (state.n or state.operation):
        return True
    return GoldPayload.of(state).is_validated(state.n, state.operation)


def _reaches(layout: Layout, pipeline: str, taken: Mapping[str, State]) -> bool:
    """Whether the versions ``taken`` of a rebuild have everything that readers see in the current
    tables."""

    def _current(path: str) -> State:
        return Table(layout.storage, path, pipeline=pipeline).refresh()

    above = next((path for path in taken if kind_of(path) == BRONZE), None)
    if above is not None:  # its batch ids begin again at 1, and operations are not repeated
        reached = BronzePayload.of(taken[above]).offsets
        wanted = BronzePayload.of(_current(above)).offsets
        return all(reached.get(at, 0) >= wanted[at] for at in wanted)
    # An operation is a commit of its own: its gate may hold it, or another job still work on it.
    return all(
        state.operation >= current.operation
        and (state.n >= current.n or not kind_of(path).is_dense)
        for path, state in taken.items()
        for current in (_current(path),)
    )


def rebuild_files(layout: Layout, pipeline: str, generation: int, path: str) -> frozenset[str]:
    """The data files of a table's rebuild that is under way at bronze's ``generation``.

    They include those of all versions, because it is not known which version is published. No
    current table has them, and a vacuum must keep them.

    Call this before reading the current table: then files that are published in between are in one
    of the two.
    """
    rebuild = begun_rebuild(layout, generation)
    if rebuild is None or path not in rebuild.tables:
        return frozenset()
    table = rebuild.table(layout, pipeline, path)
    try:
        if not table.exists:
            return frozenset()
        return frozenset(file.path for commit in lineage(table) for file in commit.files)
    except (DeltaError, LogGapError, OSError):
        if begun_rebuild(layout, generation) == rebuild:
            raise
        return frozenset()  # it was published or abandoned meanwhile
