"""Starts and stops a pipeline's jobs as processes of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from headgate import exit_codes
from headgate.commands import anywhere, pipeline_command, rendered
from headgate.errors import HeadgateError
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.control.driver_requests import pause as request_pause
from headgate.lake.control.driver_requests import request_stop
from headgate.lake.control.ownership import EXPIRES_AFTER, LAYERS
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.machine.process_tree.rotation import rotate
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.logs import format_of, line_as_text, run_log, start_line, tail_log
from headgate.supervision.progress_text import STAGE_PREFIX
from headgate.supervision.supervisor import NEEDS_A_PERSON

HEADGATE = (sys.executable, "-m", "headgate.cli")
"""How a child is started: with this interpreter, whatever is on PATH."""

STARTS_WITHIN = 180.0  # seconds until its tables are open, on a busy machine
REACHES_WITHIN = 30.0  # seconds to wait after that for a source that does not answer
STOPS_WITHIN = 300.0  # seconds: a batch is never interrupted
ASK_AGAIN = 5.0  # seconds: a job that takes its lease meanwhile ignores earlier requests
POLL_EVERY = 0.25  # seconds


class NotAliveError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """A job did not start, or did not stop, in time."""


@dataclass(frozen=True)
class Started:
    """``waits_for`` says why the driver cannot read all of its sources yet; None if it can.
    ``is_outage``: the start has waited in vain for sources that do not answer."""

    pid: int
    waits_for: str | None = None
    is_outage: bool = False


def launch(
    layout: Layout,
    file: Path,
    root: str,
    options: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
    variables: Mapping[str, str] | None = None,
) -> Started:
    """Start ``headgate run`` detached from this terminal.

    Blocks until the driver has reached its source and can plan its first batch. A driver with open
    tables is left running: the wait ends after ``REACHES_WITHIN`` if its source does not answer,
    and after ``STARTS_WITHIN`` if it is still busy. ``say`` receives its stages. ``variables`` are
    added to its environment. Raises NotAliveError, with its output, if it ends before that, or if
    its tables are not open in time; it is then killed.
    """
    log = run_log(layout)
    log.parent.mkdir(parents=True, exist_ok=True)
    rotate(log)
    began = datetime.now(UTC)
    # Leases are compared by epoch: the clock may be set back meanwhile.
    epoch = max((job.epoch for job in probe(layout, began)), default=0)
    with log.open("a", encoding="utf-8") as sink:
        format = format_of(options, os.environ)
        sink.write(start_line(began, format, layout.storage.root.rpartition("/")[2]) + "\n")
        sink.flush()
        read = sink.tell()
        process = subprocess.Popen(
            [*HEADGATE, "run", str(file), "--root", root, *options],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={**driver_environment(os.environ), **(variables or {})},
            start_new_session=True,
        )
    deadline, opened = time.monotonic() + STARTS_WITHIN, None
    while (now := time.monotonic()) < deadline:
        jobs = _opened(layout, epoch)
        if jobs and all(job.has_reached_sources for job in jobs):
            away = (job.trouble for job in jobs if not job.reads_all_sources)
            return Started(process.pid, next(away, None))
        opened = now if jobs and opened is None else opened
        outage = next((job.trouble for job in jobs if job.lacks_sources), None)
        if outage and opened is not None and now - opened >= REACHES_WITHIN:
            return Started(process.pid, outage, is_outage=True)
        if (code := process.poll()) is not None:
            raise _ended(layout, log, code, (file, root), began)
        read = _relay(log, read, say)
        time.sleep(POLL_EVERY)
    if _opened(layout, epoch):
        return Started(process.pid, "it is still bringing its tables up to date")
    # It may hold no lease yet, so nothing else could find and stop it.
    _kill_tree(psutil.Process(process.pid))
    process.wait()
    raise NotAliveError(
        f"process {process.pid} had not opened its tables in {STARTS_WITHIN:.0f} s, and was ended",
        remedy=f"see its output: {pipeline_command('logs')}",
    )


def _relay(log: Path, read: int, say: Callable[[str], None]) -> int:
    """Pass the stages in whole lines of ``log`` after ``read`` to ``say``; returns their end."""
    with log.open("rb") as lines:
        lines.seek(read)
        whole, newline, _ = lines.read().rpartition(b"\n")
    for line in map(line_as_text, whole.decode(errors="replace").splitlines()):
        if line.startswith(STAGE_PREFIX):
            # Without the duration, which `say` counts itself.
            say(re.sub(r": \d+ s$", "", line.removeprefix(STAGE_PREFIX)))
    return read + len(whole + newline)


def driver_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """The environment ``outer`` without Airflow's variables: they hold passwords and tokens, and a
    driver runs for weeks."""
    return {k: v for k, v in outer.items() if not k.lstrip("_").startswith("AIRFLOW")}


def _opened(layout: Layout, epoch: int) -> tuple[JobState, ...]:
    """The jobs with a later ``epoch``, once the tables of all layers are open; before that,
    none."""
    # For a job that has ended again, probe returns the last status of its predecessor.
    ours = tuple(j for j in _alive(layout) if j.epoch > epoch and j.is_open)
    return ours if {layer for job in ours for layer in job.layers} == set(LAYERS) else ()


def _ended(
    layout: Layout, log: Path, code: int, about: tuple[Path, str], began: datetime
) -> NotAliveError:
    """Why the process ended, as it recorded. If it recorded nothing, its output is the reason,
    which is recorded here if a restart cannot repair the failure."""
    failure = last_failure(layout)
    if failure is None or failure.at < began:
        logs = rendered(pipeline_command("logs"), anywhere(*about))
        failure = Failure(code, _last_output(log), logs, datetime.now(UTC), (logs,))
        if code in NEEDS_A_PERSON:
            record_failure(layout, failure)
    return NotAliveError(failure.reason, failure.remedy, code=code if code > 0 else None)


def _last_output(log: Path) -> str:
    """The lines of the log since the last start."""
    output: list[str] = []
    for line in reversed(tail_log(log, 40)):
        if line.startswith("---"):
            break
        if not line.startswith(STAGE_PREFIX):
            output.insert(0, line)
    return "\n".join(output) or "it ended without output"


def stop(
    layout: Layout,
    *,
    timeout: float = STOPS_WITHIN,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[JobState, ...]:
    """Ask the jobs to end after their current batch, and wait until they have.

    The request is also made if no job is alive: a supervisor may be about to start one. A job on
    another machine that renews its lease no longer is not waited for: the machine may be gone, and
    the next driver takes over. Returns the jobs that were alive. Raises NotAliveError if one does
    not end in time.
    """
    alive = _alive(layout)
    _ask_to_stop(layout)
    asked = clock()
    deadline, seen = asked + timeout, dict[int, tuple[datetime, float]]()
    while left := [job for job in _alive(layout) if not _is_silent(job, seen, clock())]:
        if clock() > deadline:
            raise NotAliveError(
                f"{left[0].owner} has not ended in {timeout:.0f} s",
                remedy="kill it on that machine, nothing is lost: "
                + pipeline_command("stop", "--now"),
            )
        if clock() - asked >= ASK_AGAIN:
            asked = clock()
            _ask_to_stop(layout)
        wait(POLL_EVERY)
    return alive


def _is_silent(job: JobState, seen: dict[int, tuple[datetime, float]], now: float) -> bool:
    """Whether a job on another machine has not renewed its lease for as long as another driver has
    to wait for it. ``seen`` has when each lease was first seen as it is; clocks of machines are not
    compared."""
    renewed, since = seen.get(job.epoch, (None, now))
    if renewed != job.renewed:
        seen[job.epoch] = job.renewed, now
        return False
    return not job.owner.is_here and now - since > EXPIRES_AFTER.total_seconds()


def stop_now(layout: Layout) -> tuple[JobState, ...]:
    """Kill the jobs, and keep supervisors from starting them again. Raises as ``kill`` does; the
    request stays."""
    try:
        _ask_to_stop(layout)
    finally:  # also if the disk is full
        alive = kill(layout)
    return alive


def _ask_to_stop(layout: Layout) -> None:
    # Do not create a folder for a mistyped root.
    if layout.storage.exists(CONTROL):
        request_stop(layout)


def pause(
    layout: Layout,
    *,
    timeout: float = STOPS_WITHIN,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> datetime:
    """Ask bronze to read no new data, and wait until its current batch has ended.

    Returns the time of the pause. Raises NotAliveError if the job does not pause in time; the
    request stays.
    """
    since = request_pause(layout, datetime.now(UTC))
    deadline = clock() + timeout
    while left := [j for j in _alive(layout) if "bronze" in j.layers and j.paused is None]:
        if clock() > deadline:
            raise NotAliveError(
                f"{left[0].owner} has not paused in {timeout:.0f} s; it will when its batch ends",
                remedy=f"{pipeline_command('status')}, {pipeline_command('logs')}",
            )
        wait(POLL_EVERY)
    return since


def kill(layout: Layout) -> tuple[JobState, ...]:
    """Kill the jobs and their child processes (the JVM); the tables stay as of their last commit.

    A pid that now belongs to another process is left alone. Raises NotAliveError for a job on
    another machine.
    """
    alive = _alive(layout)
    for job in alive:
        process = job.owner.process()
        if process is None:
            if not job.owner.is_dead():
                raise NotAliveError(
                    f"process {job.owner.pid} runs on {job.owner.host}, not here",
                    remedy=f"on {job.owner.host}: kill -9 {job.owner.pid}",
                )
            continue
        _kill_tree(process)
    return alive


def _kill_tree(process: psutil.Process) -> None:
    family = [process]
    with suppress(psutil.Error):
        family += process.children(recursive=True)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(family, timeout=10)


def _alive(layout: Layout) -> tuple[JobState, ...]:
    return tuple(job for job in probe(layout, datetime.now(UTC)) if job.is_alive)
