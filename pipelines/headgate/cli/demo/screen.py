"""Shows the running demo: gold on a terminal, else a line per batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headgate.cli.screen import Report, Say, Words, screen
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.supervision.words import words

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.jobs.progress import Progress
    from headgate.storage.layout import Layout

SHOWN = 8
GOLD = f"""
    SELECT window_start, auction, bids, volume, top, final FROM gold.bids_per_minute
    ORDER BY window_start DESC, bids DESC, auction LIMIT {SHOWN}
"""


@contextmanager
def demo_screen(
    out: Console, declared: Pipeline, layout: Layout, events: int
) -> Iterator[tuple[Report, Say]]:
    """Yields two functions: the driver calls one with its progress, and the other with its
    stages."""
    out.print(f"{plural(events, 'bid')} go through bronze, silver and gold; Spark starts …")
    if not out.is_terminal:
        with screen(out) as lines:
            yield lines.take, lines.say
        return
    shown = _Filling(declared, layout, events)
    with Live(get_renderable=shown.render, console=out, refresh_per_second=4, transient=True):
        threading.Thread(target=shown.read_gold, name="gold", daemon=True).start()
        yield shown.take, shown.say
        shown.ended.set()


class _Filling:
    """Shows gold. It is read on its own thread, so that reading does not delay a batch."""

    def __init__(self, declared: Pipeline, layout: Layout, events: int) -> None:
        self._declared = declared
        self._layout = layout
        self._events = events
        self._progress: Progress | None = None
        self._stage = "starting Spark"
        self._began = time.monotonic()
        self._gold: Table | None = None
        self.ended = threading.Event()

    def take(self, progress: Progress) -> None:
        self._progress = progress

    def say(self, stage: str) -> None:
        self._stage = stage

    def read_gold(self) -> None:
        from headgate.cli.rows import table_of
        from headgate.querying.sql import select

        seen = 0
        while not self.ended.wait(0.3):
            if self._progress is None or self._progress.n == seen:
                continue
            seen = self._progress.n
            with suppress(HeadgateError):
                columns, rows = select(self._declared, self._layout, GOLD)
                self._gold = table_of("gold.bids_per_minute", columns, rows)

    def render(self) -> RenderableType:
        if self._progress is None:
            return Text(f"{self._stage} … {time.monotonic() - self._began:.0f} s", style="dim")
        table = Table.grid()  # a bar alone does not end its line
        table.add_row(ProgressBar(self._events, self._progress.read, width=60))
        table.add_row(Words(words(self._progress, datetime.now(UTC))))
        return Group(table, *([self._gold] if self._gold else []))
