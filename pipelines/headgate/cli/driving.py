"""Runs a driver in this process and forwards signals to it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.machine.process_tree.presence import ends_on_request

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.driver.driver import Driver


_NICENESS = 15
"""The stream has priority: what runs beside it, and its JVM, have this niceness, and half of the
cores at most."""
ENDING = "ending after the current batch; Ctrl-C again ends at once, and loses nothing"
ENDED = "ended at once; nothing is lost: the next start goes on from the last commit"


def jars_for(pipeline: Pipeline) -> tuple[Path, ...]:
    """The jars of Spark's Kafka connector if the pipeline reads or writes topics, else none. Raises
    HeadgateError if they are missing."""
    from headgate.declaration.contracts.sink import sink_of
    from headgate.declaration.contracts.source import connector_of
    from headgate.machine.jars import cached_jars

    reads = any(connector_of(source).needs_jars for source in pipeline.sources.values())
    if not reads and not any(sink_of(each).needs_jars for each in pipeline.publish.values()):
        return ()
    try:
        return cached_jars()
    except HeadgateError as error:
        why = f"{pipeline.name} needs Spark's Kafka connector. {error.message}"
        raise HeadgateError(why, error.remedy, code=exit_codes.MACHINE) from error


def driver_of_requests(declared: Pipeline, root: str, *, loads: bool = False) -> Driver:
    """A driver that ends when it has carried out the waiting requests; with ``loads``, also the
    open loads. Raises HeadgateError if jars are missing."""
    from headgate.driver.driver import Driver
    from headgate.driver.task import Task

    cores, jars = os.cpu_count() or 2, jars_for(declared)
    return Driver(
        Task(declared, root, once=True, only_open=True, loads=loads, cores=cores, jars=jars)
    )


def require_machine(pipeline: Pipeline) -> None:
    """Raises HeadgateError if there is no suitable Java or locale, or if jars are missing."""
    require_java()
    jars_for(pipeline)


def require_java() -> None:
    """Raises HeadgateError without a suitable Java, or a locale with UTF-8: Spark would fail
    without a clear message."""
    from headgate.setup.doctor.environment import names_of_files
    from headgate.setup.doctor.machine import java

    for finding in (check() for check in (names_of_files, java)):
        if not finding.ok:
            said = f"{finding.name}: {finding.found} (needed: {finding.needed})"
            raise HeadgateError(said, finding.remedy, code=exit_codes.MACHINE)


def give_the_stream_priority() -> None:
    """Lower the priority of this process, and of the JVM that it starts."""
    os.nice(_NICENESS)


@contextmanager
def session_beside_the_stream(name: str) -> Iterator[Any]:
    """A Spark session for one command."""
    from headgate.driver.session import passing_session

    with passing_session(name, max((os.cpu_count() or 2) // 2, 1)) as spark:
        yield spark


def drive(driver: Driver) -> None:
    """Run a driver to its end. Raises what the driver raises.

    The driver runs on a thread of its own: PySpark then leaves the signal handlers alone, and a
    signal is handled even while a call into the JVM blocks.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            driver.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="driver", daemon=True)
    with on_signals(lambda _: driver.stop()) as asked:
        thread.start()
        observed = False
        while thread.is_alive():
            thread.join(0.2)
            if asked and not observed:
                observed = True
                if thread.is_alive():
                    print(ENDING, file=sys.stderr)
                with suppress(OSError, HeadgateError):  # such as a full disk
                    if _is_of_a_person(asked[0]):
                        driver.record_end()
    if failures:
        raise failures[0]


def _is_of_a_person(number: int) -> bool:
    """Whether a signal is from a person: Ctrl-C, or the end of the Airflow that runs this process.
    Any other SIGTERM may be from a system that shuts down."""
    return number == signal.SIGINT or ends_on_request(os.environ)


@contextmanager
def on_signals(stop: Callable[[int], None] = lambda _: None) -> Iterator[Sequence[int]]:
    """Yields a list that gets the number of a SIGINT or SIGTERM when it arrives; ``stop`` is then
    called with it. A second signal ends the process at once.

    ``stop`` runs between any two instructions of the main thread. So the main thread must not wait
    on an Event that ``stop`` sets: the main thread may hold the lock that ``stop`` needs, and would
    then hang forever.
    """
    asked: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if asked:
            # A live line has hidden the cursor, and no later code shows it again.
            shown = "\x1b[?25h" if os.isatty(2) else ""
            os.write(2, f"{shown}\n{ENDED}\n".encode())
            os._exit(exit_codes.INTERRUPTED)
        asked.append(number)
        stop(number)

    before = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
