"""What a person can do about damage that cannot be rebuilt: the newest intact savepoint, and how to
restore it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from deltalake import DeltaTable

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.declaration.model import Pipeline
from headgate.history.savepoints.bronze_lineage import BronzeLineage
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.history.savepoints.verify import passed_over, verify_savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import batches
from headgate.lake.tables.live_files import live_paths
from headgate.lake.tables.table import Table

SourceHolds = Callable[[Mapping[str, int], Sequence[str]], str | None]
"""Returns why a source no longer has all records after some offsets (of some topics); None if it
has them."""
Bad = Mapping[str, Collection[str]]
"""The paths of damaged files, by table."""
_ALSO = "; a replay, load, drain or backfill since then has to be requested again"


def way_back(
    layout: Layout,
    pipeline: Pipeline,
    source_holds: SourceHolds,
    bronze: Table | None,
    bad: Bad,
    *,
    are_files_known: bool,
) -> str:
    """A message with the command. ``bronze`` is None if a damaged log, of any table, prevents a
    restore in place. ``are_files_known``: the files log is intact, if there is one. Reads every
    page of every file of the savepoint."""
    said = f"if there is a backup of {layout.storage.uri()}, put it back as a whole; otherwise "
    found = newest_intact(layout, pipeline, bad)
    if found is None:
        anew = "read all that the source still has into another folder, as no savepoint is intact"
        return f"{said}{anew}:\n{pipeline_command('run', '--root', NEW_ROOT)}"
    said += f"restore savepoint {found.id}, the newest one that is intact"
    if bronze is not None and not bad.get(bronze.name) and _goes_on_from(bronze, found):
        return f"{said}:\n{pipeline_command('savepoint restore', found.id)}"
    gone = source_holds(found.offsets, found.topics) if are_files_known else None
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


def _goes_on_from(bronze: Table, savepoint: Savepoint) -> bool:
    """Whether bronze, as it is now, has every batch after a savepoint."""
    try:
        batches(bronze, savepoint.n, bronze.state.n)
    except LogGapError:
        return False
    return BronzeLineage(bronze).has(savepoint)
