"""The protocol holds, whatever the interleaving: small scenarios, searched to the end."""

from __future__ import annotations

import pytest

from tests.property.protocol.scenario import BAD, GOOD, LATE, Event, Scenario
from tests.property.protocol.search import explore

LAYERS = ("bronze", "silver", "gold")

SCENARIOS = {
    # Every kind of row, batches of any size, a second driver that may start at any moment.
    "take over": Scenario((GOOD, BAD, LATE)),
    "take over twice": Scenario((LATE,), roles=("fused",) * 3),
    "list files": Scenario((GOOD, GOOD), recorded=False),
    # Windows are closed between batches: later rows for them are late.
    "close windows": Scenario((Event(0), Event(5, ("late",)), Event(0)), closings=1),
    "close twice": Scenario((Event(0), Event(0)), closings=2),
    # The second driver has another declaration, under which rows turn out otherwise.
    "change the declaration": Scenario(
        (Event(0, ("good", "bad")), Event(0, ("late", "good"))), definitions=(0, 1)
    ),
    "compact": Scenario((GOOD, LATE), compactions=1),
    "per layer": Scenario((GOOD, LATE), roles=LAYERS, finish=LAYERS),
    "per layer, close windows": Scenario((GOOD, GOOD), roles=LAYERS, finish=LAYERS, closings=1),
    "per layer, compact": Scenario((GOOD, BAD), roles=LAYERS, finish=LAYERS, compactions=1),
    "take over bronze": Scenario((GOOD, GOOD), roles=("bronze", "silver", "bronze")),
    "take over silver": Scenario((GOOD, BAD), roles=("silver", "gold", "silver"), batches=2),
    "take over gold": Scenario((GOOD, LATE), roles=("silver", "gold", "gold"), batches=2),
    "fused to per layer": Scenario((LATE,), roles=("fused", *LAYERS), finish=LAYERS),
    "per layer to fused": Scenario((LATE,), roles=(*LAYERS, "fused")),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_interleaving_breaks_the_protocol(name: str) -> None:
    findings = explore(SCENARIOS[name])
    assert findings.violation is None, "\n".join(findings.trace)
    assert findings.states > 100


def test_a_driver_that_is_left_alone_does_its_work() -> None:
    """One driver, no choices: the search degenerates to a run that ends with every table full."""
    findings = explore(Scenario((GOOD, BAD, LATE), roles=("fused",), recorded=False))
    assert findings.violation is None
    assert findings.states < 1000
