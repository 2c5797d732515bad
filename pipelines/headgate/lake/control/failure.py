"""Why the last start of a pipeline failed: a document that stays until the next start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.layout import Layout

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
    write_document(layout.storage, FAILURE, encoded(failure))


def last_failure(layout: Layout) -> Failure | None:
    """The failure of the last start; None if it has not failed."""
    return read_value(layout.storage, FAILURE, Failure)


def forget_failure(layout: Layout) -> None:
    """Remove the failure, because a new start tries again what failed before."""
    layout.storage.remove(FAILURE)
