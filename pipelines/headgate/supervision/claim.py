"""Who supervises a stream now. Each new supervisor replaces the last one.

One that is told to stop its stream asks first whether the claim is still its own: where a task is
cleared, the next attempt may have adopted the stream already. And one that comes finds the claim
of the last: if that was ended by hand before it could stop the stream, the new one does so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout

_DOCUMENT = Layout.document("supervisor")


@dataclass(frozen=True)
class Claim:
    """``token`` is unlike any other claim's, ``by`` names the supervisor (a task of a DAG run);
    ``is_over`` says that it gave the stream up in good order. ``reported`` is the time of the last
    failure that a supervisor has reported: it is a person's now, and no news to the next one."""

    token: str
    by: tuple[str, ...]
    since: datetime
    is_over: bool = False
    reported: datetime | None = None


def claim(layout: Layout, wanted: Claim) -> None:
    reported = wanted.reported and wanted.reported.isoformat()
    times = {"since": wanted.since.isoformat(), "reported": reported}
    content: dict[str, Any] = asdict(wanted) | times
    write_document(layout.storage, _DOCUMENT, content)


def claimed(layout: Layout) -> Claim | None:
    """The newest claim; None if nobody ever supervised the stream."""
    document = read_document(layout.storage, _DOCUMENT)
    if document is None:
        return None
    since = datetime.fromisoformat(document["since"])
    reported = document.get("reported")
    return Claim(
        token=document["token"],
        by=tuple(document["by"]),
        since=since,
        is_over=document["is_over"],
        reported=datetime.fromisoformat(reported) if reported else None,
    )


def is_claimed_by(layout: Layout, token: str) -> bool:
    held = claimed(layout)
    return held is not None and held.token == token


def give_up(layout: Layout, token: str, reported: datetime | None = None) -> None:
    """Of one's own claim; a newer one stays. ``reported`` is the failure that it ends with."""
    held = claimed(layout)
    if held is not None and held.token == token:
        claim(layout, replace(held, is_over=True, reported=reported or held.reported))


def is_orphaned(held: Claim | None, by: tuple[str, ...], stop_asked: datetime | None) -> bool:
    """Whether the claim that ``by`` finds is of another supervisor that neither gave the stream up
    nor stopped it. If that one is over, it was ended before it could."""
    return (
        held is not None
        and held.by != by
        and not held.is_over
        and (stop_asked is None or stop_asked < held.since)
    )
