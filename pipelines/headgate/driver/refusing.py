"""Checks, before a JVM starts, whether the driver would refuse to start. The driver checks the same
again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate.declaration.kinds import BRONZE, RECORDS, kind_of
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.storage.places import parent

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline, Source
    from headgate.driver.damaged_tables import DamagedTables
    from headgate.lake.tables.agreement import States
    from headgate.lake.tables.decisions import Decisions


def require_free(declared: Pipeline, layout: Layout) -> None:
    """Raises LeaseHeldError while another process runs the pipeline."""
    from headgate.driver.lease import Lease

    Lease(layout, LAYERS, declared.name).require_free(datetime.now(UTC))


def require_apart(declared: Pipeline, layout: Layout) -> None:
    """Raises SourceError if a source reads from the folder in which tables are written."""
    from headgate.declaration.contracts.source import connector_of

    root = parent(layout.storage.root)
    for source in declared.sources.values():
        connector_of(source).require_apart(source.reads, root, declared.file)


def require_input(declared: Pipeline, layout: Layout, *, once: bool = False) -> tuple[str, ...]:
    """Raises SourceError if the folder or topic of a source cannot be used, or is where tables are
    written: a person has to correct it. Returns remarks about sources that are away, which a driver
    waits for. A run with ``once`` does not: then this raises SourceUnreachableError. One of several
    sources does not keep the others from being read, so it is only in a remark."""
    from headgate.declaration.contracts.source import connector_of
    from headgate.flow.sources.deployed_source import DeployedSource

    require_apart(declared, layout)

    def ask(source: Source) -> None:
        place = DeployedSource(layout.storage, declared.name, source)
        connector_of(source).require_input(place, declared.file)

    return _asked(declared, ask, once=once)


def _asked(declared: Pipeline, ask: Callable[[Source], None], *, once: bool) -> tuple[str, ...]:
    """Call ``ask`` with each source. Returns remarks about those for which it raises SourceError;
    raises their error if that leaves no source to read."""
    from headgate.flow.sources.errors import SourceError, SourceUnreachableError, joined_error
    from headgate.lake.control.driver_reports import about_source

    failed, remarks = dict[str, SourceError](), list[str]()
    for name, source in declared.sources.items():
        try:
            ask(source)
        except SourceError as error:
            waits = isinstance(error, SourceUnreachableError) and not once
            said = f"{error.message}: {error.remedy}{'; the driver waits for it' if waits else ''}"
            remarks.append(about_source(name, said, declared.sources))
            if not waits:
                failed[name] = error
    if len(failed) == len(declared.sources):
        raise joined_error(failed, declared.sources)
    return tuple(remarks)


def require_definitions(
    declared: Pipeline,
    states: States,
    decisions: Decisions,
    awaits: Callable[[str], bool],
    rebuilt: Collection[str] = (),
) -> None:
    """Raises DefinitionChangedError if a table was created from another declaration, unless it is
    among the ``rebuilt`` ones, or a rebuild or a reset of it is under way."""
    from headgate.driver.errors import DefinitionChangedError
    from headgate.history.savepoints.rebuilds import continued_rebuild

    under_way = continued_rebuild(decisions, declared)
    goes_on = {*rebuilt, *(under_way.tables if under_way else ())}
    for path, wanted in declared.definitions.items():
        if path in states and kind_of(path) in RECORDS and path not in goes_on:
            _, state = states[path]
            if state.definition != wanted and not awaits(path):
                raise DefinitionChangedError(declared, path)


def require_same_sources(declared: Pipeline, paths: Iterable[str]) -> None:
    """Raises DefinitionChangedError if there are bronze tables among these, and none of them is
    declared: the sources have got other names."""
    from headgate.driver.errors import DefinitionChangedError

    bronze = [path for path in paths if kind_of(path) == BRONZE]
    if bronze and declared.definitions.keys().isdisjoint(bronze):
        raise DefinitionChangedError(declared, BRONZE.path(next(iter(declared.sources))))


def require_tables(declared: Pipeline, layout: Layout) -> tuple[str, ...]:
    """Raises DefinitionChangedError if tables were created from another declaration, LogGapError or
    SavepointError if they are damaged or an incomplete copy, FileChangedError if a file has changed
    since it was recorded. Tables of an open reset or rebuild are not
    checked: the driver completes these first. Returns remarks about damage of one of several
    sources: a driver goes on with the others."""
    from headgate.driver.damaged_tables import DamagedTables
    from headgate.history.savepoints.clone import require_finished_clone
    from headgate.history.savepoints.resets import Resets
    from headgate.lake.tables.agreement import require_agreement, states_of
    from headgate.lake.tables.decisions import ControlTable

    require_finished_clone(layout)
    damaged = DamagedTables(declared, LAYERS)
    states = states_of(layout, declared, damaged.add)
    require_same_sources(declared, (*states, *filter(damaged.__contains__, declared.definitions)))
    control = ControlTable.of(layout.storage, declared.name)
    resets = Resets(control)

    def awaits(path: str) -> bool:
        return resets.awaits_at(path, states[path][1].generation)

    require_agreement(declared, states, awaits, damaged.add)
    if any(map(awaits, states)):
        damaged.require_none()
    require_definitions(declared, states, control.refresh(), awaits)
    _require_unchanged(declared, layout, states, damaged)
    return damaged.remarks


def require_unchanged(declared: Pipeline, layout: Layout, *, once: bool = False) -> None:
    """Raises FileChangedError if a file has changed since it was recorded, or has vanished before
    it was read. A run with ``once`` does not wait for a source that is away: then this raises
    SourceUnreachableError."""
    from headgate.driver.damaged_tables import DamagedTables
    from headgate.lake.tables.agreement import states_of

    damaged = DamagedTables(declared, LAYERS)
    states = states_of(layout, declared, damaged.add)
    if any(BRONZE.path(name) in states for name in declared.sources):
        _require_unchanged(declared, layout, states, damaged, once=once)


def _require_unchanged(
    declared: Pipeline,
    layout: Layout,
    states: States,
    damaged: DamagedTables,
    *,
    once: bool = False,
) -> None:
    from headgate.declaration.contracts.source import connector_of
    from headgate.flow.sources.deployed_source import DeployedSource
    from headgate.lake.tables.payloads.bronze import BronzePayload
    from headgate.lake.tables.state import State

    def ask(source: Source) -> None:
        place = DeployedSource(layout.storage, declared.name, source)
        path = BRONZE.path(source.name)
        if path in damaged.held:  # how far it was read is not known
            return
        _, state = states.get(path, (0, State.empty(path)))
        connector_of(source).require_unchanged(place, BronzePayload.of(state).offsets)

    _asked(declared, ask, once=once)
