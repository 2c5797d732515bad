"""Detects truncated logs by comparing the positions of a pipeline's tables.

A log that has lost its newest entry looks like a log that never had it. Two rules detect the loss:
no table is ever ahead of its upstream table, and no table has counted rows of a side table that are
not in the side table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from headgate.commands import SEE_DAMAGE
from headgate.declaration.graph import Graph, Node, graph_of
from headgate.declaration.kinds import BRONZE, FILES, GOLD, INPUTS, PUBLICATION, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.row_counts import covers
from headgate.lake.tables.snapshot import inputs_of, tables_of
from headgate.lake.tables.state import State


@dataclass(frozen=True)
class Disagreement:
    """``table`` has lost the end of its log; ``what`` is the evidence."""

    table: str
    what: str


States = Mapping[str, tuple[int, State]]
"""Log version and state of each table, by its path."""


Damaged = Callable[[str, LogGapError], None]
"""Called with the path of a damaged table, and the error."""


def raise_damage(_: str, error: LogGapError) -> None:
    raise error


def states_of(layout: Layout, pipeline: Pipeline, damaged: Damaged = raise_damage) -> States:
    """Read the position of every table, downstream tables first. A running driver updates them in
    the opposite order, so no table is seen ahead of its upstream. ``damaged`` is called for a table
    whose position cannot be read; if it returns, the table is left out."""
    found = {}
    for table in tables_of(layout, pipeline.name):
        try:
            state = table.refresh()
        except LogGapError as error:
            damaged(table.name, error)
        else:
            found[table.name] = table.version, state
    return found


def require_agreement(
    pipeline: Pipeline,
    states: States,
    awaits: Callable[[str], bool] = lambda _: False,
    damaged: Damaged = raise_damage,
) -> None:
    """Call ``damaged`` for each table whose log is truncated. ``awaits`` tells whether a table
    awaits a reset."""
    for found in disagreements(pipeline, states, frozenset(filter(awaits, states))):
        what = f"{found.table}: the end of its log is missing: {found.what}"
        damaged(found.table, LogGapError(what, remedy=f"see what that means: {SEE_DAMAGE}"))


def disagreements(
    pipeline: Pipeline, states: States, awaiting: Collection[str] = ()
) -> Iterator[Disagreement]:
    """The tables that have lost the end of their logs. Tables that are ``awaiting`` a reset are not
    compared."""
    graph = graph_of(pipeline)
    for log in graph.of(FILES):
        bronze = BRONZE.path(log.name)
        last, read = _state(states, log.path).n, BronzePayload.of(_state(states, bronze)).sequence
        if last < read:
            what = f"it ends at file {last:,}, and {read:,} have been read"
            yield Disagreement(log.path, what)
    for log in graph.of(INPUTS):
        if {log.path, *log.upstream}.isdisjoint(awaiting):
            yield from _ahead(graph, states, log)
    for bronze in (node.path for node in graph.of(BRONZE) if node.path not in awaiting):
        yield from _undecided(states, bronze, "ingested a replay of refused records")
    for node in graph.of(SILVER, GOLD):
        if not {node.path, *node.upstream}.isdisjoint(awaiting):
            continue
        yield from _ahead(graph, states, node)
        for key, side in node.sides.items():
            if side not in awaiting:
                yield from _uncounted(states, node.path, side, key)
        yield from _undecided(states, node.path, "carried out an operation")
    highest = max((state.generation for _, state in states.values()), default=0)
    if highest > _state(states, DECISIONS).generation:
        what = f"tables were reset to generation {highest}, but this log lacks the decision"
        yield Disagreement(DECISIONS, what)
    for publication in graph.of(PUBLICATION):
        yield from _published(publication, states)


def _published(publication: Node, states: States) -> Iterator[Disagreement]:
    upto = PublicationPayload.of(_state(states, publication.path)).version
    for read in publication.upstream:
        version = states[read][0] if read in states else 0
        if upto > version:
            what = f"it ends at version {version:,}, and {upto:,} has been published"
            yield Disagreement(read, what)


def _state(states: States, path: str) -> State:
    """The state of a table; a missing table counts as empty."""
    return states[path][1] if path in states else State.empty(path)


def has_other_numbers(graph: Graph, node: Node, held: State) -> bool:
    """Whether a gold table that reads silver has the batch ids of other sources than those that it
    is declared to read: it will be rebuilt."""
    if node.kind != GOLD or not held.n or not any(kind_of(p) == SILVER for p in node.upstream):
        return False
    has_log = any(kind_of(path) == INPUTS for path in node.upstream)
    wanted = {*graph.sources_of(node.path)} if has_log else set()
    return inputs_of(held).keys() != wanted


def followed(graph: Graph, node: Node, held: State) -> Iterator[tuple[str, int]]:
    """Each upstream table of a table, and up to which of its batches the table has processed it in
    a state."""
    if has_other_numbers(graph, node, held):
        return
    inputs = inputs_of(held)
    has_log = node.kind == INPUTS or any(kind_of(path) == INPUTS for path in node.upstream)
    for path in node.upstream:
        of_source = has_log and kind_of(path) != INPUTS
        yield path, inputs.get(graph.numbered_by(path).name, 0) if of_source else held.n


def _ahead(graph: Graph, states: States, node: Node) -> Iterator[Disagreement]:
    for above, n in followed(graph, node, _state(states, node.path)):
        if n > (upto := _state(states, above).n):
            what = f"it ends at batch {upto:,}, and {node.path} has processed {n:,}"
            yield Disagreement(above, what)


def _undecided(states: States, path: str, done: str) -> Iterator[Disagreement]:
    if _state(states, path).operation > _state(states, DECISIONS).n:
        yield Disagreement(DECISIONS, f"{path} has {done} that this log lacks")


def _uncounted(states: States, table: str, side: str, key: str) -> Iterator[Disagreement]:
    held, aside = _state(states, table), _state(states, side)
    counted, there = int(held.total.get(key, 0)), int(aside.total.get(key, 0))
    if not covers(aside.n, there, held.n, counted):
        yield Disagreement(side, f"it has {there:,} rows, and {table} has counted {counted:,}")
