"""The time up to which a gold table is final."""

from __future__ import annotations

from datetime import datetime

from headgate.commands import shell_command
from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.errors import HeadgateError
from headgate.history.savepoints.declarations import table_made_from
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import State, time_of
from headgate.lake.tables.table import Table


def final_up_to(layout: Layout, declared: Pipeline, gold: str) -> datetime | None:
    """The time up to which results are final: every result that ends then or earlier is final, or
    had no event. None if nothing is final yet.

    The operator computes it from the watermark that the table has reached: for windows, the
    watermark minus the allowed lateness (docs/semantics-of-time.md). If an operation has closed
    results up to a later time, it is that time.
    Raises HeadgateError if no such table is declared.
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
    state = table.refresh()
    made = as_computed(layout, declared, gold, state)
    return None if made is None else final_at(made, state)


def as_computed(layout: Layout, declared: Pipeline, name: str, state: State) -> GoldTable | None:
    """The gold table ``name`` as it was declared for the rows of a state. The file of the
    declaration may have changed since. Until the change is deployed, another lateness in it says
    nothing about the rows. None if the declaration of the rows is not kept."""
    path = GOLD.path(name)
    if state.definition == declared.definitions[path]:
        return declared.gold[name]
    found = table_made_from(layout, path, state.definition)
    return None if found is None else found.gold[name]


def final_at(declared: GoldTable, state: State) -> datetime | None:
    """As ``final_up_to``, at a state of the table."""
    payload = GoldPayload.of(state)
    ends: list[datetime | None] = []
    if payload.watermark is not None:
        watermark = time_of(payload.watermark)
        operator = operator_of(declared)
        ends.append(operator.final_up_to(declared.operator, watermark, declared.allowed_lateness))
    # Later batches may correct a rollup's rows that a drain has made final.
    if payload.closed_through is not None and not declared.is_rollup:
        ends.append(time_of(payload.closed_through))
    return max((end for end in ends if end is not None), default=None)
