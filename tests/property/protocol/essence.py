"""The part of a world that matters to new processes: many worlds have the same essence."""

from __future__ import annotations

from itertools import count

from tests.property.protocol.delta import EMPTIED, Commit, Log, World
from tests.property.protocol.tables import kind_of


def essence(world: World) -> World:
    """A world without the parts that only its running processes can see: fences without any other
    change, epochs, files that no commit names, and the writers of all other files."""
    kept = [kept_of(log) for log in world.logs]
    versions = {table: one[1] for table, one in zip(world.tables, kept, strict=True)}
    numbers = count()
    names: dict[str, str] = {}
    logs = []
    for table, (log, _) in zip(world.tables, kept, strict=True):
        if kind_of(table) != "files":
            names |= {p: f"#{next(numbers)}" for c in log for p in c.added if p not in names}
        logs.append(tuple(renamed(table, commit, names, versions) for commit in log))
    storage = tuple(sorted((names[path], rows) for path, rows in world.storage if path in names))
    savepoints = {
        tuple((table, versions[table][version]) for table, version in savepoint)
        for savepoint in world.savepoints
    }
    saved = tuple(sorted(savepoints))
    return World(world.tables, tuple(logs), storage, 0, saved, world.checkpoint)


def kept_of(log: Log) -> tuple[Log, list[int]]:
    """The commits that change the state, and for each version the place of its state among them."""
    kept: list[Commit] = []
    places = []
    for commit in log:
        if commit.kind != "fence" or state_of(commit) != state_of(kept[-1]):
            kept.append(commit)
        places.append(len(kept) - 1)
    return tuple(kept), places


def state_of(commit: Commit) -> Commit:
    """The table's state in a commit, without the kind of the commit and its writer."""
    return commit.without_data("", 0)._replace(app=False)


def renamed(
    table: str, commit: Commit, names: dict[str, str], versions: dict[str, list[int]]
) -> Commit:
    """A commit with the new names of its files and the new numbers of the versions that it refers
    to."""

    def at(of: str, version: int) -> int:
        return version if version == EMPTIED else versions[of][version]

    return commit._replace(
        epoch=0,
        added=tuple(names.get(path, path) for path in commit.added),
        removed=tuple(names.get(path, path) for path in commit.removed),
        origin=at(table, commit.origin),
        wanted=tuple((of, at(of, version)) for of, version in commit.wanted),
    )
