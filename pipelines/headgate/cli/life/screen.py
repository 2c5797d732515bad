"""How a running pipeline looks: a live block on a terminal, a line per batch elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text

from headgate.supervision.words import GAP, line, words

if TYPE_CHECKING:
    from headgate.jobs.progress import Progress

Report = Callable[["Progress"], None]


@contextmanager
def screen(out: Console, *, live: bool = True) -> Iterator[Report]:
    """Yields what a driver reports its progress to. Not ``live`` where jobs share a terminal."""
    if live and out.is_terminal:
        shown = _Latest()
        with Live(get_renderable=shown.text, console=out, refresh_per_second=4, transient=True):
            yield shown.take
    else:

        def report(progress: Progress) -> None:
            if progress.state == "running":
                out.print(line(progress, datetime.now(UTC)), soft_wrap=True)

        yield report


class _Latest:
    """The driver's progress object changes in place, also while no batch ends."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def take(self, progress: Progress) -> None:
        self._progress = progress

    def text(self) -> RenderableType:
        if self._progress is None:
            return Text("starting Spark …", style="dim")
        return Words(words(self._progress, datetime.now(UTC)))


@dataclass(frozen=True)
class Words:
    """Words that stay whole: a terminal too narrow for one line gets several."""

    words: tuple[str, ...]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(folded(self.words, options.max_width))


def folded(words: tuple[str, ...], width: int) -> str:
    """``words`` in lines of at most ``width`` columns, as far as they are not wider themselves."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(GAP) + len(word) <= width:
            lines[-1] += GAP + word
        else:
            lines.append(word)
    return "\n".join(lines)
