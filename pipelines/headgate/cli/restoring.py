"""Restores a savepoint of a stopped pipeline."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate.commands import NEW_ROOT, pipeline_command
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.history.savepoints.resets import ResetIntent
    from headgate.history.savepoints.savepoint import Savepoint


def restore_in_place(
    declared: Pipeline,
    layout: Layout,
    savepoint: Savepoint,
    *,
    reread: bool = False,
    starts: bool = False,
) -> ResetIntent:
    """Restore under a lease on all layers. ``starts``: this process starts a driver next. Raises
    LeaseHeldError while the pipeline runs, SavepointError if the savepoint cannot be restored.
    """
    from headgate.driver.lease import Lease
    from headgate.history.savepoints.clone import require_finished_clone
    from headgate.history.savepoints.restore import restore_savepoint

    require_finished_clone(layout)
    lease = Lease(layout, LAYERS, declared.name, "restore", starts=starts)
    with lease.held() as epoch:
        if reread:
            require_source_for(declared, layout, savepoint)
        return restore_savepoint(
            layout, declared, savepoint, epoch, datetime.now(UTC), reread=reread
        )


def print_passed_over(declared: Pipeline, layout: Layout, savepoint: Savepoint) -> tuple[str, ...]:
    """Print and return the tables of a savepoint that a restore leaves out."""
    from headgate.history.savepoints.verify import passed_over

    gone = passed_over(layout, declared, savepoint)
    for path in gone:
        print(f"{path} is neither declared nor present: it is skipped", file=sys.stderr)
    return gone


def require_source_for(declared: Pipeline, layout: Layout, savepoint: Savepoint) -> None:
    """Raises SavepointError if the source no longer holds everything after a savepoint. The remedy
    names the restore that is still possible."""
    from headgate.cli.driving import jars_for
    from headgate.driver.rereading import require_source
    from headgate.history.savepoints.errors import SavepointError

    try:
        require_source(layout, declared, savepoint, jars_for(declared))
    except SavepointError as error:
        if not reread_only(declared, layout, [savepoint]):
            raise
        raise SavepointError(
            f"{error.message}; and it cannot be restored without bronze, because bronze was reset "
            "to a batch before it",
            remedy="only a copy can restore it: "
            + pipeline_command("savepoint restore", savepoint.id, "--to", NEW_ROOT),
        ) from error


def reread_only(declared: Pipeline, layout: Layout, taken: Iterable[Savepoint]) -> frozenset[str]:
    """The ids of savepoints that need ``--reread``, because bronze was reset to a batch before
    them. Raises LogGapError if the log of the decisions is damaged."""
    from headgate.lake.tables.decisions import ControlTable

    decisions = ControlTable.of(layout.storage, declared.name).refresh()
    return frozenset(each.id for each in taken if not each.is_of_lineage(decisions))
