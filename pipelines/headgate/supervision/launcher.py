"""Where the driver of a stream lives: behind a small protocol, so that it may be elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from headgate import exit_codes
from headgate.commands import Place, anywhere
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout
from headgate.supervision import local
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.logs import newest_spark_log, run_log, tail

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
        """How commands about it are typed, in whatever shell of this machine."""
        return anywhere(self.file, self.root)


class Launcher(Protocol):
    """Starts and ends drivers, and tells how they are. Whether a second driver may start is never
    decided here: the lease does that."""

    def launch(self, stream: Stream, options: Sequence[str] = ()) -> str:
        """Start a driver that outlives the caller, and return how it is called. Blocks until it
        has reached its source; where that does not answer, the driver is left to go on trying.
        Raises HeadgateError, with what the driver said, where it does not start.
        """
        ...

    def probe(self, stream: Stream, now: datetime) -> tuple[JobState, ...]:
        """The jobs that last ran. Raises HeadgateError where nobody can tell."""
        ...

    def stop(self, stream: Stream) -> None:
        """Let it end after its batch, and wait for that. Raises HeadgateError if it does not."""
        ...

    def kill(self, stream: Stream) -> None:
        """End it at once. Raises HeadgateError where that is not possible from here."""
        ...

    def logs(self, stream: Stream, lines: int, of: LogOf = "driver") -> list[str]:
        """The last lines that the driver has said, or Spark in it."""
        ...


class LocalLauncher:
    """Processes of this machine, each a session of its own."""

    def launch(self, stream: Stream, options: Sequence[str] = ()) -> str:
        started = local.launch(stream.layout, stream.file, stream.root, options)
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
        return tail(log, lines) if log else []


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
