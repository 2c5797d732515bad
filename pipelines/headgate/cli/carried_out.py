"""Lets a driver carry out the request of a person between two batches."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline

Done = TypeVar("Done")

PATIENCE = 120.0  # seconds
_POLL = 0.5


def carried_out(
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
    from headgate.cli.driving import drive, jars_for
    from headgate.jobs.driver import Driver
    from headgate.jobs.lease_store import LeaseHeldError
    from headgate.jobs.task import Task

    jars, cores = jars_for(declared), os.cpu_count() or 2
    try:
        drive(Driver(Task(declared, root, once=True, only_open=True, cores=cores, jars=jars)))
    except LeaseHeldError:
        said = (
            "the running driver does it between two batches, with the declaration it was started "
            "with"
        )
        print(said, file=sys.stderr)
    ends = time.monotonic() + PATIENCE
    while True:
        done, still = look()
        if done is not None:
            return done
        if not still:
            raise gone
        if time.monotonic() >= ends:
            raise waits
        time.sleep(_POLL)
