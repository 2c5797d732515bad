"""The source of a deployed pipeline, and its input that is not read."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.model import Source
from headgate.lake.storage.files import Storage


@dataclass(frozen=True)
class DeployedSource:
    """The source of a pipeline and the location of its tables. ``pipeline`` is its name."""

    storage: Storage
    pipeline: str
    source: Source


@dataclass(frozen=True)
class UnreadInput:
    """Input that is not read (again). It is set aside as unreadable, skipped by a person, or
    withdrawn: skipped after it was read, so that bronze has its records."""

    sequence: int
    path: str
    status: str
    reason: str
