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
    ``is_over`` says that it gave the stream up in good order."""

    token: str
    by: tuple[str, ...]
    since: datetime
    is_over: bool = False


def claim(layout: Layout, wanted: Claim) -> None:
    content: dict[str, Any] = asdict(wanted) | {"since": wanted.since.isoformat()}
    write_document(layout.storage, _DOCUMENT, content)


def claimed(layout: Layout) -> Claim | None:
    """The newest claim; None if nobody ever supervised the stream."""
    document = read_document(layout.storage, _DOCUMENT)
    if document is None:
        return None
    since = datetime.fromisoformat(document["since"])
    return Claim(document["token"], tuple(document["by"]), since, document["is_over"])


def is_claimed_by(layout: Layout, token: str) -> bool:
    held = claimed(layout)
    return held is not None and held.token == token


def give_up(layout: Layout, token: str) -> None:
    """Of one's own claim; a newer one stays."""
    held = claimed(layout)
    if held is not None and held.token == token:
        claim(layout, replace(held, is_over=True))


def was_left(held: Claim | None, by: tuple[str, ...], stop_asked: datetime | None) -> bool:
    """Whether the claim that ``by`` finds is of another supervisor that neither gave the stream up
    nor stopped it. If that one is over, it was ended before it could."""
    return (
        held is not None
        and held.by != by
        and not held.is_over
        and (stop_asked is None or stop_asked < held.since)
    )
