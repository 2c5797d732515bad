"""Why the last start of a pipeline failed: a document that stays until the next start."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout

FAILURE = Layout.document("failure")


@dataclass(frozen=True)
class Failure:
    """``code`` is the exit code (docs/operations.md), ``remedy`` what to do next, with commands as
    they can be typed; ``commands`` are the commands in it. ``at`` distinguishes failures."""

    code: int
    reason: str
    remedy: str
    at: datetime
    commands: tuple[str, ...] = ()


def record_failure(layout: Layout, failure: Failure) -> None:
    write_document(layout.storage, FAILURE, asdict(failure) | {"at": failure.at.isoformat()})


def last_failure(layout: Layout) -> Failure | None:
    """The failure of the last start; None if it has not failed."""
    document = read_document(layout.storage, FAILURE)
    if document is None:
        return None
    at = datetime.fromisoformat(document["at"])
    commands = tuple(document.get("commands", ()))
    return Failure(document["code"], document["reason"], document["remedy"], at, commands)


def forget_failure(layout: Layout) -> None:
    """Remove the failure, because a new start tries again what failed before."""
    layout.storage.remove(FAILURE)
