"""A driver as a process of its own: ``python -m tests.support.runner DECLARATION ROOT [OPTION…]``.

Options: --drain, --take-over, --accept-gap, --layers bronze,silver, and --on, with which it runs
until it is stopped. The last line of its output is ``done``, or the name of the error that ended
it. SIGTERM stops it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from headgate import failpoints
from headgate.cli.driving import jars_for
from headgate.declaration.load import load
from headgate.driver.driver import Driver
from headgate.driver.lease import LeaseChange, LocalLeases
from headgate.driver.task import Task
from headgate.errors import HeadgateError
from headgate.lake.control.ownership import LAYERS


def main(declaration: str, root: str, *options: str) -> int:
    layers: tuple[str, ...] = LAYERS
    if "--layers" in options:
        layers = tuple(options[options.index("--layers") + 1].split(","))
    pipeline = load(Path(declaration))
    task = Task(
        pipeline,
        root,
        layers=layers,
        once="--on" not in options,
        drain="--drain" in options,
        take_over="--take-over" in options,
        accept_gap="--accept-gap" in options,
        jars=jars_for(pipeline),
    )
    freeze_between_renewals()
    driver = Driver(task)
    signal.signal(signal.SIGTERM, lambda *_: driver.stop())
    try:
        driver.run()
    except HeadgateError as error:
        print(error, type(error).__name__, sep="\n", flush=True)
        return error.exit_code
    print("done", flush=True)
    return 0


def freeze_between_renewals() -> None:
    """A process that is frozen while it renews its lease keeps the lock of the leases, and nobody
    can take over. That is not what a test with a frozen driver is about."""
    if (act := failpoints._armed) is None:
        return
    turn, update = threading.RLock(), LocalLeases.update

    def at_failpoint(name: str) -> None:
        with turn:
            act(name)

    def renew(leases: LocalLeases, change: LeaseChange) -> None:
        with turn:
            update(leases, change)

    failpoints._armed = at_failpoint
    LocalLeases.update = renew  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    # deltalake can abort the interpreter on its way out.
    os._exit(code)
