"""What a world comes down to for whoever starts afresh: many worlds are one, then."""

from __future__ import annotations

from itertools import count

from tests.property.protocol.delta import EMPTIED, TABLES, Commit, Log, World


def essence(world: World) -> World:
    """A world without what only those who run in it can tell: fences that changed nothing,
    epochs, files that no commit names, and who wrote the others."""
    kept = [kept_of(log) for log in world.logs]
    versions = {table: one[1] for table, one in zip(TABLES, kept, strict=True)}
    numbers = count()
    names: dict[str, str] = {}
    logs = []
    for table, (log, _) in zip(TABLES, kept, strict=True):
        if table != "files":
            names |= {p: f"#{next(numbers)}" for c in log for p in c.added if p not in names}
        logs.append(tuple(renamed(table, commit, names, versions) for commit in log))
    storage = tuple(sorted((names[path], rows) for path, rows in world.storage if path in names))
    savepoints = {
        tuple((table, versions[table][version]) for table, version in savepoint)
        for savepoint in world.savepoints
    }
    return World(tuple(logs), storage, 0, tuple(sorted(savepoints)), world.checkpoint)


def kept_of(log: Log) -> tuple[Log, list[int]]:
    """The commits that say anything new, and of each version the place of its state among them."""
    kept: list[Commit] = []
    places = []
    for commit in log:
        if commit.kind != "fence" or state_of(commit) != state_of(kept[-1]):
            kept.append(commit)
        places.append(len(kept) - 1)
    return tuple(kept), places


def state_of(commit: Commit) -> Commit:
    """What a commit says of its table, whoever made it and however."""
    return commit.without_data("", 0)._replace(app=False)


def renamed(
    table: str, commit: Commit, names: dict[str, str], versions: dict[str, list[int]]
) -> Commit:
    """A commit with its files and the versions that it speaks of as they are called here."""

    def at(of: str, version: int) -> int:
        return version if version == EMPTIED else versions[of][version]

    return commit._replace(
        epoch=0,
        added=tuple(names.get(path, path) for path in commit.added),
        removed=tuple(names.get(path, path) for path in commit.removed),
        origin=at(table, commit.origin),
        asked=at("bronze", commit.asked),
        wanted=tuple((of, at(of, version)) for of, version in commit.wanted),
    )
