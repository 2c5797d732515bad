"""Finds pipelines under other roots, or run from other declarations of the same name.

Running drivers are found by the processes of this user. A stopped pipeline is found only under the
given roots; there is no list of all roots.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from headgate.errors import HeadgateError
from headgate.lake.control.ownership import LAYERS, lease_path
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.supervision.job_state import StateName, overall_state, probe
from headgate.supervision.logs import FORMAT_OPTION

_WITH_VALUE = (
    "--root",
    FORMAT_OPTION,
    "--layer",
    "--declared-as",
    "--from-savepoint",
    "--full-refresh",
)
_DEFAULT_ROOT = "lake"


@dataclass(frozen=True)
class RunningDriver:
    """``declared`` is the name or path of the pipeline on its command line."""

    pid: int
    declared: Path
    root: Path

    @property
    def file(self) -> Path | None:
        """The declaration; None if no file has the name on the command line."""
        folder, name = self.declared.parent, f"{self.declared.name}.yml"
        places = (self.declared, folder / "pipelines" / name, folder / name)
        return next((place.resolve() for place in places if place.is_file()), None)


@dataclass(frozen=True)
class Sighting:
    """A pipeline under a root. ``file`` and ``pid`` are its declaration and process, if a process
    of this user on this machine runs it."""

    pipeline: str
    root: Path
    state: StateName
    pid: int | None = None
    file: Path | None = None

    @property
    def is_alive(self) -> bool:
        return self.state in ("running", "paused", "stale")


def running_drivers() -> Iterator[RunningDriver]:
    """Drivers of this user on this machine. Takes some milliseconds for a few hundred processes."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().real != os.getuid():
                continue
            words = process.cmdline()
            if not any("headgate" in word for word in words):
                continue
            called = driver_of(words, Path(process.cwd()), process.environ().get("HEADGATE_ROOT"))
            if called is not None:
                yield RunningDriver(process.pid, *called)


def driver_of(
    words: Sequence[str], folder: Path, root: str | None = None
) -> tuple[Path, Path] | None:
    """The pipeline and the root of a command line that was started in ``folder``; None if it does
    not run a driver. ``root`` is the root in its environment."""
    called = next((i for i, word in enumerate(words) if _is_headgate(word)), None)
    if called is None or list(words[called + 1 : called + 2]) != ["run"]:
        return None
    named, under, rest = None, root or _DEFAULT_ROOT, iter(words[called + 2 :])
    for word in rest:
        option, equals, value = word.partition("=")
        if option in _WITH_VALUE:
            value = value if equals else next(rest, "")
            under = value if option == "--root" else under
        elif not word.startswith("-") and named is None:
            named = word
    return None if named is None else (folder / named, folder / under)


def _is_headgate(word: str) -> bool:
    return word == "headgate.cli" or Path(word).name == "headgate"


def sightings(
    drivers: Sequence[RunningDriver], roots: Iterable[Path], now: datetime
) -> tuple[Sighting, ...]:
    """Every pipeline under the drivers' roots and ``roots``, which are folders."""
    by_pid = {driver.pid: driver for driver in drivers}
    found = []
    for root in dict.fromkeys(p.resolve() for p in (*(d.root for d in drivers), *roots)):
        for name in _pipelines(root):
            try:
                jobs = probe(Layout.of(str(root), name), now)
            except HeadgateError:
                continue  # damaged, or of another version: `status` of that pipeline reports it
            pids = [job.owner.pid for job in jobs if job.is_alive]
            driver = next((by_pid[pid] for pid in pids if pid in by_pid), None)
            file = None if driver is None else driver.file
            found.append(Sighting(name, root, overall_state(jobs), next(iter(pids), None), file))
    return tuple(found)


def _pipelines(root: Path) -> Iterator[str]:
    """The pipelines that have run under a folder."""
    with suppress(OSError):
        for control in sorted(root.glob(f"*/{CONTROL}")):
            if any((control.parent / lease_path(layer)).is_file() for layer in LAYERS):
                yield control.parent.name
