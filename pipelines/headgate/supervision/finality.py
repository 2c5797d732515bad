"""How far a gold table is final."""

from __future__ import annotations

from datetime import datetime

from headgate.commands import shell_command
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout
from headgate.tables.state import time_of
from headgate.tables.table import Table


def final_up_to(layout: Layout, declared: Pipeline, gold: str) -> datetime | None:
    """The time up to which no window changes any more: all that end then or before are final, or
    had no event. None where nothing is final yet.

    That is the watermark that the table has absorbed, less its allowed lateness
    (docs/semantics-of-time.md), or where an operation has closed its windows, if that is later.
    Raises HeadgateError where no such table is declared.
    """
    if gold not in declared.gold:
        known = ", ".join(declared.gold) or "none"
        raise HeadgateError(
            f"{declared.name} declares no gold table {gold} (it has: {known})",
            remedy=shell_command("plan", str(declared.file)),
        )
    table = Table(layout.storage, GOLD.path(gold), pipeline=declared.name)
    if not table.exists:
        return None
    state, lateness = table.refresh(), declared.gold[gold].allowed_lateness
    ends = []
    if state.watermark is not None:
        ends.append(time_of(state.watermark) - lateness)
    if state.closed_through is not None:
        ends.append(time_of(state.closed_through))
    return max(ends, default=None)
