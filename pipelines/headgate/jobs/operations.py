"""Operations: rare changes to tables outside the flow of batches, each carried out exactly once.

The intent is a commit on bronze with a rising number, so it is fenced like every commit and has
its place in the order of batches. It is open while a gold table's number is lower; nothing marks
it done and nothing is removed. Bronze takes no batch while one is open, and gold carries it out
only where it stands at bronze's n (docs/exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.gold.closing import close_windows
from headgate.jobs.medallion import Medallion
from headgate.tables.state import commit_time

Clock = Callable[[], datetime]


def intend_closing(medallion: Medallion, clock: Clock) -> None:
    """Ask for every open gold row to become final. Bronze's job does this, between batches."""
    if not medallion.gold:
        return
    bronze = medallion.bronze.table
    held = bronze.refresh()
    state = replace(
        held.held("operation", bronze.epoch),
        operation=held.operation + 1,
        at=commit_time(clock()),
    )
    bronze.commit(state)
    failpoint("operation.intended")


def carry_out(medallion: Medallion, clock: Clock) -> None:
    """Do what is intended and not done, in every gold table that has caught up with bronze."""
    intended = medallion.bronze.table.refresh()
    for gold in medallion.gold.values():
        held = gold.gold.refresh()
        if held.operation < intended.operation and held.n == intended.n:
            close_windows(gold, intended.operation, clock())
            failpoint("operation.table_done")


class Openness:
    """Whether an operation holds bronze's next batch. An intent is bronze's own commit, so gold
    is looked at only while bronze intends what was not yet seen carried out."""

    def __init__(self, medallion: Medallion) -> None:
        self._bronze = medallion.bronze.table
        self._gold = [stage.gold for stage in medallion.gold.values()]
        self._done = 0

    def is_open(self) -> bool:
        """Whether an intent has not been carried out by every gold table."""
        intended = self._bronze.refresh().operation
        if intended > self._done and all(t.refresh().operation >= intended for t in self._gold):
            self._done = intended
        return intended > self._done
