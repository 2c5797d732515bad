"""Has a driver carry out what a person asks for, between two batches."""

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
    """What ``look`` finds once it is done: the running driver does it; if none runs, one that ends
    after it. ``look`` also says whether the request still waits.

    Raises ``gone`` if it neither waits nor is done, ``waits`` if no driver does it in time.
    """
    from headgate.cli.driving import drive, jars_for
    from headgate.jobs.driver import Driver
    from headgate.jobs.lease_store import LeaseHeldError
    from headgate.jobs.task import Task

    jars, cores = jars_for(declared), os.cpu_count() or 2
    try:
        drive(Driver(Task(declared, root, once=True, only_open=True, cores=cores, jars=jars)))
    except LeaseHeldError:
        said = "the running driver takes it in between two batches, by the rules it started with"
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
