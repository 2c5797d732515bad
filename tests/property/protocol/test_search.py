"""The protocol holds in every interleaving: small scenarios, searched to the end.

All of them are searched if the model changes (``searched.py``), and by `make nightly`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.property.protocol.scenario import BAD, GOOD, LATE, Event, Scenario
from tests.property.protocol.search import explore
from tests.support.rounds import in_full

LAYERS = ("bronze", "silver", "gold")
FUSED = ("fused",)
GOLD_FIRST, SILVER_FIRST = LAYERS[::-1], ("silver", "gold", "bronze")
ANY_ORDER = (LAYERS, GOLD_FIRST, SILVER_FIRST)
RESTORED = (("restore", "fused"), ("restore", *GOLD_FIRST))
REREAD = (("reread", "fused"), ("reread", *GOLD_FIRST))

# If windows are closed, a row in the first window is late from then on.
CLOSED = (Event(0), Event(1), Event(0))
BEYOND = (*CLOSED, GOOD)
# Savepoint 0 at batch 0 and 1 at batch 1; then bronze has another past.
TWO_LINEAGES = ("savepoint", "batch", "savepoint", "reread 0", "double", "savepoint")
ONE_MORE = ("batch", "savepoint", "batch")
AHEAD = Scenario((GOOD, BAD), history=("batch", "batch"), before="bronze")  # only bronze has it

RUNNING = {
    # Every kind of row, batches of any size, a second driver that may start at any moment.
    "take over": Scenario((GOOD, BAD, LATE)),
    "take over twice": Scenario((LATE,), roles=FUSED * 3),
    "list files": Scenario((GOOD, GOOD), recorded=False),
    # Windows are closed between batches: later rows for them are late.
    "close windows": Scenario((Event(0), Event(5, ("late",)), Event(0)), drains=1),
    "close twice": Scenario((Event(0), Event(0)), drains=2),
    # The second driver has another declaration, under which rows have other outcomes.
    "change the declaration": Scenario(
        (Event(0, ("good", "bad")), Event(0, ("late", "good"))), definitions=(0, 1)
    ),
    "compact": Scenario((GOOD, LATE), compactions=1),
    "per layer": Scenario((GOOD, LATE), roles=LAYERS, finish=ANY_ORDER),
    "per layer, close windows": Scenario((GOOD, GOOD), roles=LAYERS, finish=ANY_ORDER, drains=1),
    "per layer, compact": Scenario((GOOD, BAD), roles=LAYERS, finish=(LAYERS,), compactions=1),
    "take over bronze": Scenario((GOOD, GOOD), roles=("bronze", "silver", "bronze")),
    "take over silver": replace(AHEAD, roles=("silver", "gold", "silver")),
    "take over gold": replace(AHEAD, events=(GOOD, LATE), roles=("silver", "gold", "gold")),
    "fused to per layer": Scenario((LATE,), roles=("fused", *LAYERS), finish=(LAYERS,)),
    "per layer to fused": Scenario((LATE,), roles=(*LAYERS, "fused")),
}

SAVEPOINTS = {
    # Taken between any two commits of a running driver; restored at any later moment, by a process
    # that may die or pause anywhere, as may the driver.
    "at any moment": Scenario(
        (GOOD, LATE), roles=("fused", "savepoint", "restore"), finish=(FUSED, GOLD_FIRST)
    ),
    "at any moment, reread": Scenario(
        (BAD, LATE), roles=("fused", "savepoint", "reread"), finish=(FUSED, GOLD_FIRST)
    ),
    "around a closing": Scenario(
        CLOSED, roles=("fused", "savepoint"), history=("batch",), drains=1, finish=RESTORED
    ),
    "around a closing, reread": Scenario(
        CLOSED, roles=("fused", "savepoint"), history=("batch",), drains=1, finish=REREAD
    ),
    "of jobs per layer": Scenario(
        (GOOD, BAD, LATE),
        roles=("bronze", "silver", "savepoint"),
        history=("batch",),
        finish=(*RESTORED, *REREAD),
    ),
    "of jobs per layer, around a closing": Scenario(
        CLOSED,
        roles=("silver", "gold", "savepoint"),
        history=("batch", "close", "batch"),
        before="bronze",
        finish=(*RESTORED, *REREAD),
    ),
    # Taken while a pipeline goes back: a savepoint that could not be restored is not taken.
    "while tables go back": Scenario(
        CLOSED, roles=("restore", "savepoint"), history=ONE_MORE, finish=RESTORED
    ),
    "while bronze goes back": Scenario(
        CLOSED, roles=("reread", "savepoint"), history=ONE_MORE, finish=(*RESTORED, *REREAD)
    ),
    "while gold is built anew": Scenario(
        CLOSED,
        roles=("rebuild", "savepoint"),
        history=("batch", "close", "batch"),
        finish=RESTORED,
    ),
    # A copy has its own files log, and lists the remaining files again.
    "copied": Scenario((GOOD, BAD), roles=("fused", "savepoint"), recorded=False, copies=True),
}

RESETS = {
    "restore": Scenario(
        CLOSED,
        roles=("restore", "fused"),
        history=("savepoint", "batch", "close", "batch"),
        finish=(FUSED, *ANY_ORDER, *RESTORED),
    ),
    "reread": Scenario(
        CLOSED,
        roles=("reread", "fused"),
        history=("batch", "savepoint", "batch", "close"),
        finish=(FUSED, *ANY_ORDER, *REREAD),
    ),
    "restore to behind a closing": Scenario(
        BEYOND,
        roles=("restore", "fused"),
        history=("batch", "close", "batch", "savepoint", "batch", "close"),
        finish=(FUSED, GOLD_FIRST),
    ),
    "rebuild": Scenario(
        CLOSED,
        roles=("rebuild", "fused"),
        history=("batch", "close", "batch", "savepoint"),
        finish=(FUSED, *ANY_ORDER, *RESTORED),
    ),
    # The process that requests a reset is paused, and jobs of single layers start beside it.
    "reread beside new jobs": Scenario(
        (GOOD, LATE),
        roles=("reread", "silver", "gold", "bronze"),
        history=("savepoint", "batch"),
        finish=(GOLD_FIRST,),
    ),
    "restore beside silver": Scenario(
        (GOOD, BAD),
        roles=("restore", "silver"),
        history=("savepoint", "batch", "batch"),
        finish=(GOLD_FIRST,),
    ),
    "restore beside gold": Scenario(
        CLOSED,
        roles=("restore", "silver", "gold"),
        history=("savepoint", "batch", "close", "batch"),
        finish=(LAYERS, GOLD_FIRST),
    ),
    "rebuild beside gold": Scenario(
        CLOSED,
        roles=("rebuild", "gold"),
        history=("batch", "close", "batch", "close"),
        finish=(GOLD_FIRST,),
    ),
    # One after the other; the first may not be done. New jobs start in between.
    "restore twice": Scenario(
        (GOOD, BAD),
        roles=("restore", "silver", "restore"),
        history=("savepoint", "batch"),
        finish=(GOLD_FIRST,),
    ),
    "reread, then rebuild": Scenario(
        CLOSED, roles=("reread", "rebuild"), history=ONE_MORE, finish=(FUSED, *ANY_ORDER)
    ),
    # A rebuild is published while jobs run.
    "publish": Scenario(CLOSED, history=("batch", "close"), publications=1, drains=2),
    "publish beside jobs": Scenario(
        CLOSED,
        roles=LAYERS,
        history=("batch", "close"),
        before="bronze",
        publications=1,
        finish=ANY_ORDER,
    ),
    "publish beside a restore": Scenario(
        CLOSED,
        roles=("restore", "bronze", "gold"),
        history=("savepoint", "batch", "close", "batch"),
        publications=1,
        finish=(LAYERS, GOLD_FIRST),
    ),
    # Bronze goes to batches that it had in another past.
    "reread sideways": Scenario(
        (GOOD, GOOD),
        roles=("restore", "fused"),
        history=(*TWO_LINEAGES, "reread 1"),
        finish=(*RESTORED, *REREAD),
    ),
    # Which operations are in force: the one of savepoint 1, none of savepoint 0.
    "reread before a closing and back": Scenario(
        CLOSED,
        roles=("reread", "fused"),
        history=("batch", "savepoint", "close", "savepoint", "batch", "reread 0", "double"),
        finish=(*RESTORED, *REREAD),
    ),
    "restore a closing that was taken back": Scenario(
        CLOSED,
        roles=("restore", "fused"),
        history=("batch", "savepoint", "close", "savepoint", "reread 0", "batch", "close"),
        finish=(*RESTORED, *REREAD),
    ),
    "restore, with a closing that was taken back": Scenario(
        CLOSED,
        roles=("reread", "fused"),
        history=("savepoint", "batch", "close", "reread 0", "batch", "savepoint", "batch"),
        finish=(*RESTORED, *REREAD),
    ),
    "reread, then restore": Scenario(
        CLOSED,
        roles=("reread", "restore"),
        history=("batch", "savepoint", "batch", "close"),
        finish=(FUSED, *ANY_ORDER),
    ),
    "reread, then restore what was before": Scenario(
        CLOSED,
        roles=("reread", "fused"),
        history=("savepoint", "batch", "batch", "savepoint"),
        finish=(*RESTORED, *REREAD),
    ),
}

SCENARIOS = {
    **RUNNING,
    **{f"savepoint, {name}": scenario for name, scenario in SAVEPOINTS.items()},
    **RESETS,
}


@in_full
@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_interleaving_breaks_the_protocol(name: str) -> None:
    findings = explore(SCENARIOS[name])
    assert findings.violation is None, "\n".join(findings.trace)
    assert findings.states > 100


def test_a_driver_that_is_left_alone_does_its_work() -> None:
    """One driver, no choices: the search degenerates to a run that ends with every table full."""
    findings = explore(Scenario((GOOD, BAD, LATE), roles=FUSED, recorded=False))
    assert findings.violation is None
    assert findings.states < 1000


def test_a_restore_that_is_left_alone_takes_every_table_back() -> None:
    findings = explore(Scenario((GOOD, BAD), roles=("restore",), history=ONE_MORE))
    assert findings.violation is None
    assert findings.states < 100
