"""Opening the tables of a job, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from headgate.declaration.kinds import BRONZE, kind_of
from headgate.jobs.anew import Anew
from headgate.jobs.errors import DefinitionChangedError
from headgate.jobs.medallion import Medallion
from headgate.jobs.rebuilding import rebuild
from headgate.savepoints.declarations import keep
from headgate.savepoints.errors import ResetOpenError
from headgate.savepoints.store import create
from headgate.savepoints.undeclared import undeclared
from headgate.storage.layout import Layout
from headgate.tables.agreement import States, require_agreement, states_of
from headgate.tables.damage import require_present
from headgate.tables.engine import engine


def open_tables(
    medallion: Medallion, layout: Layout, epoch: int, now: datetime, anew: Anew
) -> None:
    """Fence the tables, finish what a crash left open, and see that they are what is declared.

    Raises DefinitionChangedError, also where the source had another name, FencedError,
    LogGapError, DamagedFileError.
    """
    states = states_of(layout, medallion.pipeline)
    if medallion.bronze.table.name not in states and any(kind_of(p) == BRONZE for p in states):
        raise DefinitionChangedError(medallion.pipeline, medallion.bronze.table.name)
    require_agreement(medallion.pipeline, states, _awaits(medallion, states))
    _look_back(medallion, layout, now)
    medallion.open(epoch, now)
    _finish_undeclared(medallion, layout, epoch, now)
    for table in medallion.owned():
        require_present(table)
    changed = {table.name for table in medallion.changed()} if anew.changed else set()
    why = "the declaration changed" if changed else "asked for by hand"
    rebuild(medallion, layout, changed | set(anew.tables), epoch, now, why)
    medallion.require_declared()
    keep(layout, medallion.pipeline)


def _finish_undeclared(medallion: Medallion, layout: Layout, epoch: int, now: datetime) -> None:
    """What a reset asks of tables that no job owns: otherwise it would be open for ever."""
    if "bronze" not in medallion.layers:
        return
    waiting = tuple(t for t in undeclared(layout, medallion.pipeline) if medallion.resets.awaits(t))
    for table in waiting:
        table.fence(epoch)
    medallion.resets.carry_out(waiting, now)


def _awaits(medallion: Medallion, states: States) -> Callable[[str], bool]:
    if medallion.bronze.table.name not in states:
        return lambda _: False
    return lambda path: medallion.resets.awaits_at(path, states[path][1].generation)


def _look_back(medallion: Medallion, layout: Layout, now: datetime) -> None:
    """Where other versions are about to write these tables: a way back to before that. Tables that
    a reset is open for are on such a way already."""
    bronze = medallion.bronze.table
    if "bronze" in medallion.layers and bronze.exists:
        wrote = bronze.refresh().engine
        if wrote not in ("", engine()):
            with suppress(ResetOpenError):
                create(layout, medallion.pipeline, now, f"written by {wrote}")
