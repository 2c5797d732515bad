"""Reads the locks in `infra/`: jars with their sizes and SHA-256."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from headgate.commands import INSTALL_AGAIN
from headgate.errors import HeadgateError

_PACKAGE = Path(__file__).resolve().parents[2]
_PLACES = (
    _PACKAGE.parents[1] / "infra",  # a clone: <clone>/pipelines/headgate
    _PACKAGE / "infra",  # an installed wheel
)


class LockSet(StrEnum):
    """Jars that are used together; the value is the name of their lock."""

    SPARK = "jars.lock"
    KAFKA = "kafka.lock"


@dataclass(frozen=True)
class Jar:
    """A pinned jar. ``coordinates`` are ``organisation:artifact:revision``."""

    coordinates: str
    size: int
    sha256: str

    @property
    def organisation(self) -> str:
        return self.coordinates.split(":")[0]

    @property
    def artifact(self) -> str:
        return self.coordinates.split(":")[1]

    @property
    def revision(self) -> str:
        return self.coordinates.split(":")[2]

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.revision}.jar"


def lock_file(lock: LockSet = LockSet.SPARK) -> Path:
    """The lock of this installation. Raises HeadgateError if it is missing."""
    for place in _PLACES:
        if (place / lock).is_file():
            return place / lock
    raise HeadgateError(
        f"{lock} is missing: it is neither in {_PLACES[0]} nor in {_PLACES[1]}.",
        INSTALL_AGAIN,
    )


@cache
def locked(lock: LockSet = LockSet.SPARK) -> tuple[Jar, ...]:
    """The jars of a lock, in its order (the order of the classpath). Read once."""
    return read_lock(lock_file(lock))


def read_lock(path: Path) -> tuple[Jar, ...]:
    """Raises HeadgateError, naming the entry, if the lock is not a list of pinned jars."""
    try:
        return tuple(_jar(entry) for entry in json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise HeadgateError(
            f"{path} cannot be read: {error}",
            f"Restore the file: git checkout -- infra/{path.name}",
        ) from error


def _jar(entry: dict[str, object]) -> Jar:
    coordinates, size, sha256 = entry["coordinates"], entry["size"], entry["sha256"]
    if not isinstance(coordinates, str) or coordinates.count(":") != 2:
        raise ValueError(f"{coordinates!r} is not organisation:artifact:revision")
    if not isinstance(size, int) or not isinstance(sha256, str) or len(sha256) != 64:
        raise ValueError(f"{coordinates} needs a size and a sha256")
    return Jar(coordinates, size, sha256)
