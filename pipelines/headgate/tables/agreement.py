"""Whether the tables of a pipeline agree about how far each of them is.

A log that lost its newest entry looks like one that never had it. The tables around it tell: none
is ever ahead of the one that feeds it, and those that count rows of a side table counted them
before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from headgate.commands import SEE_DAMAGE
from headgate.declaration.model import Pipeline, Publication
from headgate.storage.layout import Layout
from headgate.tables.cut import tables_of
from headgate.tables.errors import LogGapError
from headgate.tables.state import State

_ABOVE = {"gold": Layout.gold, "late": Layout.late, "quarantine": Layout.quarantine}


@dataclass(frozen=True)
class Disagreement:
    """``table`` has lost the end of its log, as ``what`` tells."""

    table: str
    what: str


States = Mapping[str, tuple[int, State]]
"""Log version and state of each table, by its path."""


def covers(side: int, counted_there: int, n: int, counted: int) -> bool:
    """Whether a side table at batch ``side`` has all rows up to batch ``n``: it has gone further,
    or has as many as were counted. It skips batches that have none for it."""
    return side > n or counted_there == counted


def states_of(layout: Layout, pipeline: Pipeline) -> States:
    """Read where every table stands: a running driver moves them the other way round, so that none
    is found ahead by accident. Raises LogGapError."""
    found = {}
    for table in tables_of(layout, pipeline.name):
        state = table.refresh()
        found[table.name] = table.handle.version(), state
    return found


def require_agreement(
    pipeline: Pipeline, states: States, awaits: Callable[[str], bool] = lambda _: False
) -> None:
    """``awaits`` says which tables are about to go back anyway. Raises LogGapError."""
    for found in disagreements(pipeline, states, frozenset(filter(awaits, states))):
        raise LogGapError(
            f"{found.table}: its log has lost its end: {found.what}",
            remedy=f"see what that means: {SEE_DAMAGE}",
        )


def disagreements(
    pipeline: Pipeline, states: States, awaiting: Collection[str] = ()
) -> Iterator[Disagreement]:
    """Which tables have lost the end of their logs. Those ``awaiting`` a reset are about to go back
    and are compared with none."""
    source = pipeline.source
    bronze, aside = Layout.bronze(source.name), Layout.quarantine(source.name)
    log = Layout.files_log(source.name)
    top = _state(states, bronze)
    sequence, last = top.sequence, _state(states, log).n
    if source.files is not None and last < sequence:
        yield Disagreement(log, f"it ends at file {last:,}, and {sequence:,} have been read")
    for table in pipeline.silver_of(source.name):
        path = Layout.silver(table.name)
        if path in awaiting:
            continue
        yield from _ahead(states, path, bronze)
        if aside not in awaiting:
            yield from _uncounted(states, path, aside, "quarantined")
        for declared in pipeline.gold_of(table.name):
            gold, late = Layout.gold(declared.name), Layout.late(declared.name)
            if gold in awaiting:
                continue
            yield from _ahead(states, gold, path)
            if late not in awaiting:
                yield from _uncounted(states, gold, late, "late")
            if _state(states, gold).operation > top.operation:
                yield Disagreement(bronze, f"{gold} has carried out an operation it does not know")
    highest = max((state.generation for _, state in states.values()), default=0)
    if highest > top.generation:
        yield Disagreement(bronze, f"tables were reset to generation {highest}: it asked for that")
    yield from _published(pipeline, states)


def published_from(publication: Publication) -> str:
    """The path of the table that is published."""
    return _ABOVE[publication.layer](publication.table)


def _published(pipeline: Pipeline, states: States) -> Iterator[Disagreement]:
    for name, publication in pipeline.publish.items():
        read = published_from(publication)
        upto = _state(states, Layout.published(name)).offsets.get("version", 0)
        version = states[read][0] if read in states else 0
        if upto > version:
            what = f"it ends at version {version:,}, and {upto:,} has been published"
            yield Disagreement(read, what)


def _state(states: States, path: str) -> State:
    """Of a table that is not there, as of one that is empty."""
    return states[path][1] if path in states else State()


def _ahead(states: States, below: str, above: str) -> Iterator[Disagreement]:
    n, upto = _state(states, below).n, _state(states, above).n
    if n > upto:
        yield Disagreement(above, f"it ends at batch {upto:,}, and {below} has absorbed {n:,}")


def _uncounted(states: States, table: str, side: str, key: str) -> Iterator[Disagreement]:
    held, aside = _state(states, table), _state(states, side)
    counted, there = int(held.total.get(key, 0)), int(aside.total.get(key, 0))
    if not covers(aside.n, there, held.n, counted):
        yield Disagreement(side, f"it has {there:,} rows, and {table} has counted {counted:,}")
