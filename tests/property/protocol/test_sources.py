"""The protocol of a pipeline with two sources holds in every interleaving: batches of either source
in any order; a source that fails, is added or is removed; resets of both. Source b has no side
tables."""

from __future__ import annotations

import pytest

from tests.property.protocol.scenario import Event, Scenario
from tests.property.protocol.search import explore
from tests.property.protocol.test_search import FUSED, GOLD_FIRST, LAYERS, REREAD, RESTORED
from tests.support.rounds import in_full

AB = ("a", "b")
A, B = Event(source="a"), Event(source="b")
LATE_A = Event(outcomes=("late",), source="a")
ONLY_A = ("a",)
ONLY_B = ("b",)

SOURCES = {
    # Either source at any time, and a second driver that may start at any moment.
    "take over": Scenario((LATE_A, B, B), sources=AB),
    "list files": Scenario((A, B), sources=AB, recorded=False),
    "close windows": Scenario((A, B, B), sources=AB, history=("batch b",), drains=1),
    "per layer": Scenario((A, B), roles=LAYERS, sources=AB, finish=(LAYERS, GOLD_FIRST)),
    "per layer, close windows": Scenario(
        (A, A, B),
        roles=LAYERS,
        sources=AB,
        history=("batch a", "close", "batch b"),
        before="bronze",
        drains=2,
        finish=(LAYERS, GOLD_FIRST),
    ),
    # A source of which no batch can be read any more.
    "a source fails": Scenario(
        (A, A, B), sources=AB, history=("batch a",), failing=ONLY_A, drains=1
    ),
    "a source fails, per layer": Scenario(
        (A, A, B), roles=LAYERS, sources=AB, history=("batch a",), failing=ONLY_A
    ),
    # Silver and gold of a source cannot go on. Its batches are read all the same.
    "a source is damaged": Scenario(
        (A, A, B), sources=AB, history=("batch a",), damaged=ONLY_A, drains=1
    ),
    # Each driver has a declaration of its own; drivers of the last one finish.
    "a source is added": Scenario((A, A, B), sources=AB, declared=(ONLY_A, AB), drains=1),
    "a source is removed": Scenario((A, B, B), sources=AB, declared=(AB, ONLY_A), drains=1),
    "a source is removed and added again": Scenario(
        (A, B),
        roles=FUSED * 3,
        sources=AB,
        declared=(AB, ONLY_A, AB),
    ),
    "a source is absent at an operation": Scenario(
        (A, B, B),
        sources=AB,
        declared=(AB, ONLY_A),
        history=("batch a", "batch b", "declare 1", "close", "declare 0"),
        finish=(FUSED, LAYERS),
    ),
    # Savepoints and resets of both sources together
    "savepoint around a closing, reread": Scenario(
        (A, A, B),
        roles=("fused", "savepoint"),
        sources=AB,
        history=("batch a",),
        drains=1,
        finish=REREAD,
    ),
    "savepoint around a closing, restore": Scenario(
        (A, A, B),
        roles=("fused", "savepoint"),
        sources=AB,
        history=("batch a",),
        drains=1,
        finish=RESTORED,
    ),
    "reread": Scenario(
        (A, A, B),
        roles=("reread", "fused"),
        sources=AB,
        history=("batch a", "savepoint", "batch b", "close", "batch a"),
        finish=(FUSED, LAYERS, GOLD_FIRST, *REREAD),
    ),
    "restore": Scenario(
        (A, A, B),
        roles=("restore", "fused"),
        sources=AB,
        history=("batch a", "savepoint", "batch b", "close", "batch a"),
        finish=(FUSED, LAYERS, GOLD_FIRST, *RESTORED),
    ),
    "rebuild of one": Scenario(
        (A, A, B),
        roles=("rebuild", "fused"),
        sources=AB,
        history=("batch a", "close", "batch b", "close", "batch a"),
        finish=(FUSED, LAYERS, GOLD_FIRST),
    ),
    "publish one": Scenario(
        (A, B, B),
        sources=AB,
        history=("batch a", "batch b", "close"),
        publications=1,
    ),
    # Bronze of source b is read again, beside everything else, while operations are decided.
    "rebuild of the bronze of one": Scenario(
        (A, B), sources=AB, history=("batch b", "close"), rebuilt=ONLY_B, drains=2
    ),
    "rebuild of the bronze of one, per layer": Scenario(
        (A, B),
        roles=LAYERS,
        sources=AB,
        history=("batch a", "batch b"),
        rebuilt=ONLY_B,
        drains=1,
        finish=(LAYERS, GOLD_FIRST),
    ),
    "reread, then rebuild of one": Scenario(
        (A, B),
        roles=("savepoint", "reread", "rebuild"),
        sources=AB,
        in_turn=True,
        history=("batch a", "savepoint", "batch b"),
        finish=(("restore", "fused"),),
    ),
    # Source a is at the batch of both savepoints, source b has another past.
    "one source has another past": Scenario(
        (A, B, B),
        roles=("restore", "fused"),
        sources=AB,
        history=("batch a", "savepoint", "batch b", "savepoint", "reread 0", "double b"),
        finish=(*RESTORED, *REREAD),
    ),
    "reread of before a source was added": Scenario(
        (A, A, B),
        roles=("reread", "fused"),
        sources=AB,
        declared=(AB, ONLY_A),
        history=("declare 1", "batch a", "savepoint", "declare 0", "batch b", "batch a", "close"),
        finish=(FUSED, *REREAD),
    ),
    # The restore does not know source b. A later declaration adds it again.
    "restore while a source is removed": Scenario(
        (A, B),
        roles=("restore", "fused"),
        sources=AB,
        declared=(ONLY_A, AB),
        history=(
            "declare 1",
            "savepoint",
            "batch a",
            "batch b",
            "close",
            "reread 0",
            "batch a",
            "batch b",
            "savepoint",
        ),
        finish=(FUSED,),
    ),
}


@in_full
@pytest.mark.long
@pytest.mark.parametrize("name", SOURCES)
def test_no_interleaving_breaks_the_protocol(name: str) -> None:
    findings = explore(SOURCES[name])
    assert findings.violation is None, "\n".join(findings.trace)
    assert findings.states > 100


def test_a_source_that_fails_holds_only_its_own_tables() -> None:
    """One driver that is left alone reads all of source b, and carries an operation out for both
    sources."""
    findings = explore(
        Scenario((A, A, B, B), roles=FUSED, sources=AB, failing=ONLY_A, recorded=False, drains=1)
    )
    assert findings.violation is None
    assert findings.states < 1000
