"""What a person can do about damage that cannot be rebuilt: the newest intact savepoint, and how to
restore it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from deltalake import DeltaTable

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.kinds import name_of
from headgate.declaration.model import Pipeline
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.history.savepoints.verify import passed_over, verify_savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import batches
from headgate.lake.tables.live_files import live_paths
from headgate.lake.tables.table import Table

SourceHolds = Callable[[str, Mapping[str, int], Sequence[str]], str | None]
"""Returns why a source, by its name, no longer has all records after some offsets (of some topics);
None if it has them."""
Bad = Mapping[str, Collection[str]]
"""The paths of damaged files, by table."""
_ALSO = "; a replay, load, drain or backfill since then has to be requested again"


def way_back(
    layout: Layout,
    pipeline: Pipeline,
    source_holds: SourceHolds,
    bronze: Collection[Table] | None,
    bad: Bad,
    *,
    are_files_known: bool,
) -> str:
    """A message with the command. ``bronze`` are the bronze tables; None if a damaged log, of any
    table, prevents a restore in place. ``are_files_known``: the files logs are intact. Reads every
    page of every file of the savepoint."""
    said = f"if there is a backup of {layout.storage.uri()}, put it back as a whole; otherwise "
    found = newest_intact(layout, pipeline, bad)
    if found is None:
        anew = "read all that the source still has into another folder, as no savepoint is intact"
        return f"{said}{anew}:\n{pipeline_command('run', '--root', NEW_ROOT)}"
    said += f"restore savepoint {found.id}, the newest one that is intact"
    decisions = ControlTable.of(layout.storage, pipeline.name)
    if bronze is not None and all(
        not bad.get(table.name) and _goes_on_from(table, found, decisions) for table in bronze
    ):
        return f"{said}:\n{pipeline_command('savepoint restore', found.id)}"
    gone = _gone(source_holds, pipeline, found) if are_files_known else None
    if bronze is not None and gone is None:
        command = pipeline_command("savepoint restore", found.id, "--reread")
        return f"{said}, and read the source again from there{_ALSO}:\n{command}"
    lost = "" if gone is None else f" (the source no longer has all of it: {gone})"
    if not are_files_known:
        lost = " (a file that was read after it, and is no longer in the landing folder, is lost)"
    command = pipeline_command("savepoint restore", found.id, "--to", NEW_ROOT)
    return f"{said}, into another folder, and read the rest again there{lost}{_ALSO}:\n{command}"


def newest_intact(layout: Layout, pipeline: Pipeline, bad: Bad) -> Savepoint | None:
    """The newest savepoint of which every page of every file can be read."""
    for found in savepoints(layout):
        if isinstance(found, Savepoint):
            gone = passed_over(layout, pipeline, found)
            cheap = verify_savepoint(layout, pipeline.name, found, passing=gone)
            if cheap or _needs_any(layout, found, bad):
                continue
            if not verify_savepoint(layout, pipeline.name, found, read=True, passing=gone):
                return found
    return None


def _needs_any(layout: Layout, savepoint: Savepoint, bad: Bad) -> bool:
    """Whether a savepoint that seems intact needs a damaged file."""
    return any(
        not live_paths(DeltaTable(layout.storage.uri(path), version=saved.version)).isdisjoint(
            bad[path]
        )
        for path, saved in savepoint.tables.items()
        if bad.get(path)
    )


def _goes_on_from(bronze: Table, savepoint: Savepoint, control: ControlTable) -> bool:
    """Whether a bronze table, as it is now, has every batch after a savepoint."""
    saved = savepoint.sources.get(name_of(bronze.name))
    try:
        batches(bronze, saved.n if saved else 0, bronze.state.n)
    except LogGapError:
        return False
    return savepoint.is_of_lineage(control.refresh())


def _gone(source_holds: SourceHolds, pipeline: Pipeline, savepoint: Savepoint) -> str | None:
    """Why not all after a savepoint can be read again; None if all can."""
    for name, saved in savepoint.sources.items():
        if name in pipeline.sources and (why := source_holds(name, saved.offsets, saved.topics)):
            return why
    return None
