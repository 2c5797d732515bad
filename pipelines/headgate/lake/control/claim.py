"""The claim of a supervisor on a stream. Each new supervisor replaces the previous claim.

A supervisor stops its stream only while it holds the claim: after a task is cleared, the next
attempt may have adopted the stream already. A new supervisor reads the last claim: if that
supervisor was ended by hand before it could stop the stream, the new one stops it. The request to
stop names the claim (``lake.control.driver_requests``), so that the stream is stopped once for each
end. The end of a supervisor that had released its claim says nothing: while a supervisor starts a
driver, it may fail by itself.

Only supervisors write the claim, one at a time: a late write of another one would replace the claim
of the next supervisor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.layout import Layout

SUPERVISOR = Layout.document("supervisor")


@dataclass(frozen=True)
class Claim:
    """``token`` is unique, ``by`` names the supervisor (a task of a DAG run). ``is_over``: the
    supervisor has released the stream. ``reported`` is the time of the last failure that a
    supervisor has reported; the next supervisor does not report it again."""

    token: str
    by: tuple[str, ...]
    since: datetime
    is_over: bool = False
    reported: datetime | None = None


def claim(layout: Layout, wanted: Claim) -> None:
    write_document(layout.storage, SUPERVISOR, encoded(wanted))


def claimed(layout: Layout) -> Claim | None:
    """The newest claim; None if the stream never had a supervisor."""
    return read_value(layout.storage, SUPERVISOR, Claim)


def give_up(layout: Layout, token: str, reported: datetime | None = None) -> None:
    """Release the claim of ``token``; a newer claim stays. ``reported`` is the time of the failure
    that ended the supervisor."""
    held = claimed(layout)
    if held is not None and held.token == token:
        claim(layout, replace(held, is_over=True, reported=reported or held.reported))


def take_up(layout: Layout, token: str) -> None:
    """Take up the released claim of ``token`` again; a newer claim stays."""
    held = claimed(layout)
    if held is not None and held.token == token:
        claim(layout, replace(held, is_over=False))
