"""What can be read from logs: files, batches, and resets that are requested and not done."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import Commit, Log, Rows, World


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


def asked_for(world: World, bronze: Commit | None = None) -> Commit | None:
    """The last commit that requested resets, as recorded in bronze's last commit or in
    ``bronze``."""
    asked = (bronze or world.head("bronze")).asked
    return world.log("bronze")[asked] if asked >= 0 else None


def awaits(
    world: World, table: str, state: Commit | None = None, bronze: Commit | None = None
) -> bool:
    """Whether a reset of a table is requested and not done: now, or according to two commits."""
    intent = asked_for(world, bronze)
    if intent is None or table == "bronze" or table not in dict(intent.wanted):
        return False
    return (state or world.head(table)).generation < intent.generation
