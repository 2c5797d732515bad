"""Shows the progress of a verb on stderr: a live block on a terminal, else lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from headgate.cli.json_log import JsonStream, active
from headgate.cli.output import console
from headgate.supervision.progress_text import GAP, STAGE_PREFIX, progress_line, progress_parts

if TYPE_CHECKING:
    from headgate.driver.progress import JobProgress

Report = Callable[["JobProgress"], None]
Say = Callable[[str], None]

AGAIN = 10.0
"""Seconds after which the current stage is printed again."""
_POLL_EVERY = 1.0  # seconds


@contextmanager
def screen(out: Console, *, live: bool = True, name: str = "") -> Iterator[Screen]:
    """``live`` is False if jobs share a terminal; ``name`` then labels the stages of the job."""
    shown = Screen(out, live=live and out.is_terminal, name=name)
    if shown.live:
        from rich.live import Live

        # If stdout is a file, Live would print the output of the verb on the terminal.
        to_terminal = sys.stdout.isatty()
        with Live(
            get_renderable=shown.text, console=out, transient=True, redirect_stdout=to_terminal
        ):
            yield shown
        return
    ended = threading.Event()
    threading.Thread(target=shown.keep_reminding, args=(ended,), name="screen", daemon=True).start()
    try:
        yield shown
    finally:
        ended.set()


@contextmanager
def waiting(stage: str) -> Iterator[Say]:
    """Shows ``stage``, and each later stage, until the block ends."""
    with screen(console(stderr=True)) as shown:
        shown.say(stage)
        yield shown.say


class Screen:
    """Shows stages (``say``) and the progress of a driver (``take``); both may be called from any
    thread. Line output shows each stage until the first batch. After that it shows each batch, and
    a stage only if it takes long."""

    def __init__(
        self, out: Console, *, live: bool, name: str = "", clock: Callable[[], float] | None = None
    ) -> None:
        self.live = live
        self._out = out
        self._name = f"{name}: " if name else ""
        self._clock = clock or time.monotonic
        self._lock = threading.Lock()
        self._stage = ""
        self._began = self._printed = self._clock()
        # The driver changes the object in place, also between batches.
        self._progress: JobProgress | None = None

    def say(self, stage: str) -> None:
        """Set the current stage; an empty ``stage`` shows nothing."""
        with self._lock:
            if stage == self._stage:
                return
            self._stage, self._began = stage, self._clock()
            self._printed = self._began
            if stage and not self.live and self._progress is None:
                self._print(stage)

    def take(self, progress: JobProgress) -> None:
        """Set the progress of the driver, after a batch or a change of its ``trouble``."""
        with self._lock:
            self._stage, self._progress = "", progress
            if not self.live and progress.state == "running":
                self._print_batch(progress, progress_line(progress, datetime.now(UTC)))

    def tell(self, text: str) -> None:
        """Print a line that stays, about an outage. A stage that waits for its end is not shown."""
        with self._lock:
            self._stage = ""
            if (log := active()) and isinstance(self._out.file, JsonStream):
                self._out.file.put(log.line("outage", text, level="WARNING"))
            else:
                self._out.print(f"{datetime.now(UTC):%T}{GAP}{text}", markup=False, soft_wrap=True)

    def remind(self) -> None:
        """Print the current stage again if it takes long."""
        with self._lock:
            now = self._clock()
            if self._stage and now - self._printed >= AGAIN:
                self._printed = now
                self._print(f"{self._stage}: {now - self._began:.0f} s")

    def keep_reminding(self, ended: threading.Event) -> None:
        while not ended.wait(_POLL_EVERY):
            self.remind()

    def text(self) -> RenderableType:
        with self._lock:
            lasts = f"{self._clock() - self._began:.0f} s"
            stage = f"{self._stage} … {lasts}" if self._stage else ""
            if self._progress is None:
                return Text(stage, style="dim")
            progress = progress_parts(self._progress, datetime.now(UTC))
            return Words((*progress, stage) if stage else progress)

    def _print_batch(self, progress: JobProgress, text: str) -> None:
        if (log := active()) and isinstance(self._out.file, JsonStream):
            self._out.file.put(log.batch(progress, text))
        else:
            self._out.print(text, markup=False, soft_wrap=True)

    def _print(self, text: str) -> None:
        self._out.print(f"{STAGE_PREFIX}{self._name}{text}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Words:
    """Words that are not split. If the terminal is too narrow for one line, they take several
    lines."""

    words: tuple[str, ...]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(folded(self.words, options.max_width))


def folded(words: tuple[str, ...], width: int) -> str:
    """``words`` in lines of at most ``width`` columns. A word that is wider has a line of its
    own."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(GAP) + len(word) <= width:
            lines[-1] += GAP + word
        else:
            lines.append(word)
    return "\n".join(lines)
