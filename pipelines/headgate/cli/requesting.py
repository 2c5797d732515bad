"""The request of a person: who makes it, and how a driver carries it out between two batches."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.lake.control.requests import Request
    from headgate.lake.storage.layout import Layout
    from headgate.lake.tables.decisions import Decision
    from headgate.lake.tables.table import Table


def person(note: str = "") -> str:
    """User and host, and the ``note`` of the user. A user without a name, as in many containers, is
    a number."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    who = f"{user}@{socket.gethostname()}"
    return f"{who}: {note}" if note else who


Done = TypeVar("Done")

PATIENCE = 120.0  # seconds
_POLL = 0.5


def await_request(
    declared: Pipeline,
    root: str,
    look: Callable[[], tuple[Done | None, bool]],
    *,
    gone: HeadgateError,
    waits: HeadgateError,
) -> Done:
    """Wait until a request is carried out, and return its result. The running driver carries it
    out; if none runs, one is started here, which ends after it. ``look`` returns the result, or
    None until there is one, and whether the request still waits.

    Raises ``gone`` if the request neither waits nor is done, ``waits`` if no driver carries it out
    in time.
    """
    ends, is_driven, said = time.monotonic() + PATIENCE, False, ""
    while True:
        if not is_driven:
            is_driven, why = _drive(declared, root)
            if why not in ("", said):
                said = why
                print(why, file=sys.stderr)
        done, still = look()
        if done is not None:
            return done
        if not still:
            raise gone
        if time.monotonic() >= ends:
            raise waits
        time.sleep(_POLL)


def carried_out(
    declared: Pipeline, layout: Layout, request: Request, tables: Iterable[Table]
) -> tuple[Decision | None, bool]:
    """The decision on a request, if there is one, and whether these tables still have to carry it
    out; without a decision, whether bronze's job still has to take the request in. The request is
    read before the decisions, because it is removed after the decision."""
    from headgate.lake.control.requests import waiting_requests
    from headgate.lake.tables.decisions import ControlTable

    waits = any(each.id == request.id for each in waiting_requests(layout))
    decisions = ControlTable.of(layout.storage, declared.name).refresh()
    operation = decisions.decided(request.id)
    if operation is None:
        return None, waits
    return operation, any(each.refresh().operation < operation.number for each in tables)


def _drive(declared: Pipeline, root: str) -> tuple[bool, str]:
    """Start a driver here that ends after the waiting requests. Returns whether it did, or another
    driver runs; and what a person should know. While an operation such as a compaction has the
    tables, no driver can start."""
    from headgate.cli.driving import drive, driver_of_requests
    from headgate.driver.lease import LeaseHeldError, TablesInUseError

    driver = driver_of_requests(declared, root)
    try:
        drive(driver)
    except TablesInUseError as held:
        return False, f"waiting: {held.message}"
    except LeaseHeldError:
        return True, (
            "the running driver does it between two batches, with the declaration it was started "
            "with"
        )
    return True, ""
