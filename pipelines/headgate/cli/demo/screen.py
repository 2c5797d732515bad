"""Shows the running demo (gold on a terminal, else a line per batch), then its results."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headgate.cli.ledger import show_ledger
from headgate.cli.rows import as_text, shown, table_of
from headgate.cli.screen import Report, Say, Words, screen
from headgate.commands import Place, pipeline_command, program, rendered, shell_command
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.insight.querying.sql import select
from headgate.setup.demo.project import lake
from headgate.supervision.progress_text import progress_parts

if TYPE_CHECKING:
    from headgate.cli.demo.verb import Held
    from headgate.declaration.model import Pipeline
    from headgate.driver.progress import JobProgress
    from headgate.insight.ledger.account import Ledger
    from headgate.lake.storage.layout import Layout


SHOWN = 8
GOLD_SO_FAR = f"""
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
        self._progress: JobProgress | None = None
        self._stage = "starting Spark"
        self._began = time.monotonic()
        self._gold: Table | None = None
        self.ended = threading.Event()

    def take(self, progress: JobProgress) -> None:
        self._progress = progress

    def say(self, stage: str) -> None:
        self._stage = stage

    def read_gold(self) -> None:
        seen = 0
        while not self.ended.wait(0.3):
            if self._progress is None or self._progress.read == seen:
                continue
            seen = self._progress.read
            with suppress(HeadgateError):
                columns, rows = select(self._declared, self._layout, GOLD_SO_FAR)
                self._gold = table_of("gold.bids_per_minute", columns, rows)

    def render(self) -> RenderableType:
        if self._progress is None:
            return Text(f"{self._stage} … {time.monotonic() - self._began:.0f} s", style="dim")
        table = Table.grid()  # a bar alone does not end its line
        table.add_row(ProgressBar(self._events, self._progress.read, width=60))
        table.add_row(Words(progress_parts(self._progress, datetime.now(UTC))))
        return Group(table, *([self._gold] if self._gold else []))


GOLD = """
    SELECT window_start, auction, bids, volume, top, mean, final FROM gold.bids_per_minute
    ORDER BY window_start DESC, bids DESC, auction LIMIT 5
"""
LATE = """
    SELECT _event_id, _event_time, window_start, window_end, _clock, late_seconds
    FROM late.bids_per_minute WHERE reason = 'late' ORDER BY late_seconds DESC LIMIT 1
"""
QUARANTINED = "SELECT reason, \"column\", value FROM quarantine WHERE reason = 'wrong_type' LIMIT 1"
ANY_QUARANTINED = 'SELECT reason, "column", value FROM quarantine LIMIT 1'
REJECTED = "SELECT rules, value FROM rejected.clean_bids LIMIT 1"


def show_results(
    out: Console,
    declared: Pipeline,
    layout: Layout,
    folder: Path,
    account: Ledger,
    first_gold: float | None,
    held: Held | None,
    servers: str | None = None,
) -> None:
    """Print the ledger, the last gold rows, a late, a quarantined and a rejected row, a version of
    gold that was held, and the next steps. ``servers`` are those of a demo with a broker."""

    def rows(sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        return select(declared, layout, sql)

    if first_gold is not None:
        out.print(f"first gold row after {first_gold:.0f} s\n")
    show_ledger(account, out)
    columns, newest = rows(GOLD)
    out.print(table_of("\nthe last gold rows", columns, newest))
    for row in rows(LATE)[1]:
        out.print("\n[bold]a late bid[/]")
        out.print(why_late(row, declared.gold["bids_per_minute"].allowed_lateness), markup=False)
    for row in rows(QUARANTINED)[1] or rows(ANY_QUARANTINED)[1]:
        reason, column, value = map(shown, row)
        at = f" in column {column}" if row[1] else ""
        out.print("\n[bold]a quarantined bid[/]")
        out.print(f"{reason}{at}:", markup=False)
        out.print(value, markup=False, soft_wrap=True)
    for rules, value in rows(REJECTED)[1]:
        names = ", ".join(rule["id"] for rule in rules)
        out.print("\n[bold]a rejected bid[/]")
        out.print(f"it breaks the rule {names} of silver.clean_bids:", markup=False)
        out.print(shown(value), markup=False, soft_wrap=True)
    if held is not None:
        out.print("\n[bold]a held and released version of gold[/]")
        out.print(why_held(held, folder, declared.file), markup=False, soft_wrap=True)
    out.print("\n[bold]what to type next[/]")
    for command in next_commands(folder, declared.file, servers):
        out.print(command, markup=False, soft_wrap=True)


def why_held(held: Held, folder: Path, file: Path) -> str:
    """A held version in words."""
    hold = held.hold
    release = pipeline_command("gate release", f"gold.{hold.table}", "--reason", held.given.reason)
    return (
        f"{hold.title} stayed at batch {hold.n}: batch {hold.upto} breaks a rule.\n  {hold.why}\n"
        f"It was released, as by this command, and caught up within {held.seconds:.1f} s:\n"
        f"{rendered(release, Place(program(), str(file), str(lake(folder))))}"
    )


def why_late(row: tuple[Any, ...], allowed: timedelta) -> str:
    """A late pair in words."""
    event_id, event_time, start, end, clock, late_seconds = row
    return (
        f"{event_id} happened at {as_text(event_time)}, in the window {as_text(start)} to "
        f"{as_text(end)}.\nWhen it arrived, the watermark stood at {as_text(clock)}: "
        f"{late_seconds:.0f} s after that window, and {allowed.total_seconds():.0f} s of allowed "
        "lateness, were over.\nThe window keeps its result; the bid is in silver and in "
        "late.bids_per_minute."
    )


def next_commands(folder: Path, file: Path, servers: str | None = None) -> tuple[str, ...]:
    """Lines that can be pasted as they are. ``servers`` are those of a demo with a broker, which
    has ended."""
    place = Place(program(), str(file), str(lake(folder)))
    hint = f"    # and move more files into {folder}/landing/bids"
    more = [f"{pipeline_command('run')}{hint}"]
    if servers is not None:
        port = servers.rpartition(":")[2]
        more = [
            shell_command("kafka up", "--port", port),
            shell_command("kafka produce", "bids", "--key", "auction") + "    # from stdin",
            f"{pipeline_command('run')}    # until Ctrl-C",
            shell_command("kafka down"),
        ]
    sql = "SELECT reason, count(*) FROM quarantine GROUP BY reason"
    commands = (
        pipeline_command("ledger", "--by-id"),
        pipeline_command("query", sql),
        pipeline_command("expectations list"),
        pipeline_command("gate status"),
        f"{pipeline_command('dashboard')}    # in a browser",
        pipeline_command("plan"),
        *more,
        f"{shell_command('init', 'shop', rooted=False)}    # a project of your own",
    )
    return tuple(rendered(line, place) for line in commands)
