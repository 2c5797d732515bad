"""Creates, finds and deletes the savepoints of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headgate.commands import pipeline_command
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.history.savepoints.declarations import declaration_of
from headgate.history.savepoints.errors import NoSuchSavepointError, ResetOpenError, SavepointError
from headgate.history.savepoints.resets import last_reset_reason, tables_awaiting_reset
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.verify import passed_over, verify_savepoint
from headgate.lake.storage.documents import ids_in, read_document, write_document
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.agreement import States, require_agreement
from headgate.lake.tables.decisions import DECISIONS, ControlTable
from headgate.lake.tables.snapshot import ConsistentSnapshot, snapshot

LATEST = "latest"
ATTEMPTS = 3
"""Attempts to read a snapshot: one that is read during a reset or a replay is read again."""


@dataclass(frozen=True)
class UnreadableSavepoint:
    """A savepoint with a damaged document."""

    id: str
    why: str


def create_savepoint(
    layout: Layout, pipeline: Pipeline, now: datetime, note: str = ""
) -> Savepoint:
    """Take a savepoint of a pipeline, running or not. A running driver does not wait for it.

    Raises HeadgateError if there are no tables, ResetOpenError if a reset or rebuild of some of
    them is not finished, LogGapError if a log is damaged, also if its end is missing: stages could
    not go on from such a savepoint.
    """
    at = settled_snapshot(layout, pipeline)
    require_agreement(pipeline, _states_of(at))
    definitions = {path: position.state.definition for path, position in at.tables.items()}
    declared = declaration_of(layout, pipeline, definitions)
    savepoint = Savepoint.of(at, pipeline.name, declared, now, note=note)
    write_document(layout.storage, Layout.savepoint(savepoint.id), savepoint.document())
    return savepoint


def _states_of(at: ConsistentSnapshot) -> States:
    """The decisions are those after all tables were read: no table has carried out a later one."""
    states = {path: (position.version, position.state) for path, position in at.tables.items()}
    version, state = states[DECISIONS]
    return states | {DECISIONS: (version, replace(state, n=at.decisions.last))}


def settled_snapshot(layout: Layout, pipeline: Pipeline) -> ConsistentSnapshot:
    """A consistent snapshot in which no table awaits a reset, and whose decisions have the replays
    that are in bronze.

    Raises as ``create_savepoint`` does.
    """
    control = ControlTable.of(layout.storage, pipeline.name)
    for _ in range(ATTEMPTS):
        before = control.refresh().generation
        at = snapshot(layout, pipeline)
        waiting = tables_awaiting_reset(at)
        if not waiting and at.decisions.generation == before and not _lacks_replay(at):
            return at
    raise ResetOpenError(pipeline.name, waiting, last_reset_reason(at))


def _lacks_replay(at: ConsistentSnapshot) -> bool:
    """Whether bronze has the batch of a replay that was decided after the snapshot's decisions. A
    restore of bronze would bring back the batch, and take the replay out of force."""
    done = (position.state.operation for position in at.bronze.values())
    return any(at.decision < number <= at.decisions.last for number in done)


def savepoints(layout: Layout) -> tuple[Savepoint | UnreadableSavepoint, ...]:
    """The savepoints of a pipeline, newest first, without those that are deleted meanwhile."""
    ids = ids_in(layout.storage, Layout.savepoint("").rpartition("/")[0])
    read = (read_savepoint(layout, id_) for id_ in reversed(ids))
    return tuple(each for each in read if each is not None)


def find_savepoint(layout: Layout, wanted: str) -> Savepoint:
    """A savepoint by its id, by a prefix of its id, or the ``latest`` that can be read.

    Raises NoSuchSavepointError if there is none, SavepointError if it is damaged.
    """
    found = find_any_savepoint(layout, wanted)
    if isinstance(found, UnreadableSavepoint):
        raise SavepointError(
            f"savepoint {found.id} is damaged: {found.why}",
            remedy=f"take an older one: {pipeline_command('savepoint list')}; forget this one: "
            + pipeline_command("savepoint delete", found.id),
        )
    return found


def find_any_savepoint(layout: Layout, wanted: str) -> Savepoint | UnreadableSavepoint:
    """As ``find_savepoint``, but also returns damaged savepoints."""
    found = savepoints(layout)
    if wanted == LATEST:
        for each in found:
            if isinstance(each, Savepoint):
                return each
    matching = [each for each in found if wanted and each.id.startswith(wanted)]
    if len(matching) != 1:
        few = ", ".join(each.id for each in (matching or found)[:3])
        why = "several savepoints begin with it" if matching else "no savepoint has this name"
        raise NoSuchSavepointError(
            f"savepoint {wanted}: {why}" + (f" ({few} …)" if few else ""),
            remedy=pipeline_command("savepoint list"),
        )
    return matching[0]


def delete_savepoint(layout: Layout, savepoint: Savepoint | UnreadableSavepoint) -> None:
    """Delete a savepoint. The tables stay; vacuum may remove files that only this one needed."""
    layout.storage.remove(Layout.savepoint(savepoint.id))


def prune_savepoints(
    layout: Layout,
    pipeline: Pipeline,
    now: datetime,
    *,
    keep: int,
    keep_for: timedelta,
    note: str | None = None,
) -> tuple[Savepoint, ...]:
    """Delete savepoints that are neither among the newest ``keep`` nor younger than ``keep_for``,
    but never the newest that can be restored. With ``note``, only those with this note count.
    Returns the deleted savepoints."""
    held = [each for each in savepoints(layout) if isinstance(each, Savepoint)]
    among = [each for each in held if note in (None, each.note)]
    old = [each for each in among[keep:] if now - each.created > keep_for]
    if old and not _any_good(layout, pipeline, [each for each in held if each not in old]):
        good = next((each for each in old if _any_good(layout, pipeline, [each])), None)
        old = [each for each in old if each != good]
    for each in old:
        delete_savepoint(layout, each)
    return tuple(old)


def is_last_restorable(
    layout: Layout, pipeline: Pipeline, savepoint: Savepoint | UnreadableSavepoint
) -> bool:
    """Whether this is the only savepoint that can be restored."""
    others = [e for e in savepoints(layout) if isinstance(e, Savepoint) and e.id != savepoint.id]
    if _any_good(layout, pipeline, others):
        return False
    return isinstance(savepoint, Savepoint) and _any_good(layout, pipeline, [savepoint])


def newest_restorable(layout: Layout, pipeline: Pipeline) -> Savepoint | None:
    """The newest savepoint that can be restored without resetting bronze. Raises LogGapError."""
    decisions = ControlTable.of(layout.storage, pipeline.name).refresh()
    held = (
        each
        for each in savepoints(layout)
        if isinstance(each, Savepoint) and each.is_of_lineage(decisions)
    )
    return next((each for each in held if _any_good(layout, pipeline, [each])), None)


def _any_good(layout: Layout, pipeline: Pipeline, found: Iterable[Savepoint]) -> bool:
    return any(
        not verify_savepoint(
            layout, pipeline.name, each, passing=passed_over(layout, pipeline, each)
        )
        for each in found
    )


def read_savepoint(layout: Layout, id_: str) -> Savepoint | UnreadableSavepoint | None:
    """A savepoint by its whole id; None if there is none, or none any more."""
    try:
        document = read_document(layout.storage, Layout.savepoint(id_))
        if document is None:
            return None
        savepoint = Savepoint.from_document(document)
        if savepoint.id != id_:
            return UnreadableSavepoint(id_, f"it contains the id {savepoint.id}")
        return savepoint
    except HeadgateError as error:
        return UnreadableSavepoint(id_, error.message)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return UnreadableSavepoint(id_, str(error))
