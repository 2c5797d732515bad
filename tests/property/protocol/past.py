"""What can be read from logs: files, batches, decisions, and resets that are decided and not
done."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tests.property.protocol.delta import EMPTIED, Commit, Drains, Log, Rows, Void, World
from tests.property.protocol.tables import source_of, table_of

RESETS = ("intent", "publication")
"""The kinds of resets: they take tables back, or publish a rebuild."""
DECISIONS = ("drain", "rebuild", *RESETS)
"""The kinds of commits of control: an operation that closes windows, the begin of a rebuild, or a
reset."""


def live_files(log: Log) -> tuple[str, ...]:
    """The files that a reader of the table's last version sees."""
    files: dict[str, None] = {}
    for commit in log:
        for path in commit.removed:
            files.pop(path, None)
        files.update(dict.fromkeys(commit.added))
    return tuple(files)


def lineage(log: Log, *, jump: bool = True) -> Iterator[tuple[int, Commit]]:
    """The commits that led to a table's last version, newest first, with their versions. After a
    reset, reading continues at the version that it restored; a reset to an empty table is the
    beginning."""
    version = len(log) - 1
    while version >= 0:
        commit = log[version]
        yield version, commit
        version = commit.origin if commit.kind == "reset" and jump else version - 1


def batches(log: Log, after: int, upto: int, *, jump: bool = True) -> Iterator[Commit]:
    """The data commits that processed ``(after, upto]``, newest first."""
    for _, commit in lineage(log, jump=jump):
        if commit.n <= after:
            return
        if commit.kind == "data" and commit.n <= upto:
            yield commit


def rows_of(world: World, found: list[Commit], after: int, upto: int) -> Rows:
    """The rows of batches ``(after, upto]``, oldest first. Raises LookupError for a gap."""
    rows: Rows = ()
    reached = after
    for entry in reversed(found):
        if entry.since != reached:
            raise LookupError(f"batch {reached + 1} is not in the log")
        rows += world.read(entry.added)
        reached = entry.n
    if reached < upto:
        raise LookupError(f"batch {reached + 1} is not in the log")
    return rows


def decisions(control: Log) -> Iterator[Commit]:
    """Every decision, newest first."""
    return (commit for commit in reversed(control) if commit.kind in DECISIONS)


def resets(control: Log) -> Iterator[Commit]:
    """Every decision of a reset, newest first."""
    return (one for one in decisions(control) if one.kind in RESETS)


def operations(control: Log) -> Iterator[Commit]:
    """Every decision of an operation, newest first."""
    return (one for one in decisions(control) if one.kind == "drain")


def rebuild_under_way(control: Log) -> Commit | None:
    """The decision on the rebuild of a bronze table that is not published. Any reset makes it
    void."""
    found = next((one for one in decisions(control) if one.kind != "drain"), None)
    return found if found is not None and found.kind == "rebuild" else None


def reset_of(control: Log, table: str, *, by_table: bool = True) -> Commit | None:
    """The newest reset that names ``table``. ``by_table``: also if a newer one does not."""
    some = resets(control) if by_table else islice(resets(control), 1)
    return next((one for one in some if table in dict(one.wanted)), None)


def awaits(world: World, table: str, state: Commit | None = None, *, by_table: bool = True) -> bool:
    """Whether a reset of a table is decided and not done: now, or if its state were ``state``."""
    reset = reset_of(world.log("control"), table, by_table=by_table)
    return reset is not None and (state or world.head(table)).generation < reset.generation


def rebuilt_source(control: Log) -> str | None:
    """The source whose bronze is rebuilt now."""
    rebuild = rebuild_under_way(control)
    return None if rebuild is None else source_of(rebuild.wanted[0][0])


def void_after(control: Log) -> Void:
    """The operations that are not in force: the newest reset names them all."""
    return next((one.void for one in resets(control)), ())


def in_force(control: Log, source: str = "", *, else_at: int | None = None) -> Drains:
    """The number of every operation that is in force for the tables of a source, with its position
    there, oldest first. An operation that was decided before there was the source has no position,
    or ``else_at``."""
    void = void_after(control)
    found = ((one.n, dict(one.position).get(source, else_at)) for one in operations(control))
    return tuple((o, n) for o, n in found if n is not None and (o, source) not in void)[::-1]


def descends(world: World, bronze: str, then: Commit) -> bool:
    """Whether the batches that a bronze table had in a state are those that it has now. A batch is
    known by the table's generation at its commit and by its number."""
    rebuilt = Commit(generation=-1)  # its batches are those of no generation before
    targets = {
        one.generation: world.log(bronze)[version] if version != EMPTIED else rebuilt
        for one in resets(world.log("control"))
        if (version := dict(one.wanted).get(bronze)) is not None
    }
    generation, n = then.generation, then.n
    while generation in targets and targets[generation].n >= n:
        generation = targets[generation].generation
    present, limit = max(targets, default=0), n
    while present != generation and present in targets:
        limit = min(limit, targets[present].n)
        present = targets[present].generation
    return present == generation and limit >= n


def is_begun(world: World, source: str) -> bool:
    """Whether the tables of a source exist: there was anything else than fences."""
    log = world.log(table_of("bronze", source))
    return any(commit.kind not in ("create", "fence") for commit in log)
