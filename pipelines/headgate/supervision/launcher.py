"""Launchers start and end drivers; a driver may run on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from headgate import exit_codes
from headgate.commands import Place, anywhere
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.logs import newest_spark_log, run_log, tail_log

LogOf = Literal["driver", "spark"]
LOCAL = "headgate.supervision.launcher:LocalLauncher"


@dataclass(frozen=True)
class Stream:
    """A pipeline that runs for weeks: its declaration's file, its name, where its tables are."""

    file: Path
    name: str
    root: str

    @property
    def layout(self) -> Layout:
        return Layout.of(self.root, self.name)

    @property
    def place(self) -> Place:
        """How commands for it are typed in any shell of this machine."""
        return anywhere(self.file, self.root)


class Launcher(Protocol):
    """Starts, probes and ends drivers. The lease, not the launcher, prevents a second driver."""

    def launch(
        self,
        stream: Stream,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Start a driver that outlives the caller, and return its name. Blocks until the driver has
        reached its source; if the source does not answer, the driver keeps trying. ``variables``
        are further environment variables of the driver: their values may be secret. Raises
        HeadgateError, with the output of the driver, if it does not start.
        """
        ...

    def probe(self, stream: Stream, now: datetime) -> tuple[JobState, ...]:
        """The jobs that last ran. Raises HeadgateError if their state is unknown."""
        ...

    def stop(self, stream: Stream) -> None:
        """Stop the driver after its batch, and wait. Raises HeadgateError if it does not end.

        Makes the request (``lake.control.driver_requests``) even if no driver runs: it keeps
        supervisors from starting one.
        """
        ...

    def kill(self, stream: Stream) -> None:
        """Kill the driver. Raises HeadgateError if that is not possible from here."""
        ...

    def logs(self, stream: Stream, lines: int, of: LogOf = "driver") -> list[str]:
        """The last lines of the driver's log, or of Spark's."""
        ...


class LocalLauncher:
    """Runs drivers as processes of this machine, each in a session of its own."""

    def launch(
        self,
        stream: Stream,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> str:
        place = stream.layout, stream.file, stream.root
        started = local.launch(*place, options, variables=variables)
        waits = f" ({started.waits_for})" if started.waits_for else ""
        return f"process {started.pid}{waits}"

    def probe(self, stream: Stream, now: datetime) -> tuple[JobState, ...]:
        return probe(stream.layout, now)

    def stop(self, stream: Stream) -> None:
        local.stop(stream.layout)

    def kill(self, stream: Stream) -> None:
        local.kill(stream.layout)

    def logs(self, stream: Stream, lines: int, of: LogOf = "driver") -> list[str]:
        layout = stream.layout
        log = run_log(layout) if of == "driver" else newest_spark_log(layout)
        return tail_log(log, lines) if log else []


class NoSuchLauncherError(HeadgateError, code=exit_codes.USAGE):
    """No launcher has this name."""


def launcher_of(name: str) -> Launcher:
    """A launcher by its ``module:class``. Raises NoSuchLauncherError."""
    module, _, attribute = name.partition(":")
    try:
        return cast(Launcher, getattr(import_module(module), attribute)())
    except (ImportError, AttributeError, ValueError) as error:
        raise NoSuchLauncherError(
            f"there is no launcher {name}: {error}",
            remedy=f"name one as module:class that can be imported; the shipped one is {LOCAL}",
        ) from error
