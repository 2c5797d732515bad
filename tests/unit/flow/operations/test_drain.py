"""When another drain would change nothing."""

from __future__ import annotations

from typing import Any

from headgate.declaration.graph import graph_of
from headgate.flow.operations.carrying_out import decide_operation
from headgate.flow.operations.drain import NAME, is_drained
from headgate.lake.tables.decisions import SourcePosition
from tests.support.decisions import reset_to
from tests.unit.history.savepoints.conftest import NOW, add_batch, here, lake
from tests.unit.insight.ledger.conftest import Lake

__all__ = ["lake"]  # a fixture

REPLAY: dict[str, Any] = {"table": "per_minute", "from": None, "to": None, "keys": {}}


def decide(lake: Lake, name: str, document: dict[str, Any]) -> None:
    lake.control.refresh()
    decide_operation(lake.control, graph_of(lake.pipeline), name, document, here(lake), NOW)


def drained(lake: Lake) -> bool:
    return is_drained(lake.control.refresh(), here(lake))


def test_a_drain_is_in_force_until_the_next_batch_or_operation(lake: Lake) -> None:
    assert not drained(lake)
    decide(lake, NAME, {})
    assert drained(lake)
    decide(lake, "late_replay", REPLAY)
    assert not drained(lake)
    decide(lake, NAME, {})
    assert drained(lake)
    add_batch(lake, 3)
    assert not drained(lake)


def test_a_drain_that_a_reset_has_left_out_of_force_is_none(lake: Lake) -> None:
    decide(lake, NAME, {})
    reset_to(lake.control, {}, NOW)
    assert drained(lake), "the reset has left it in force"
    reset_to(lake.control, {}, NOW, void={"events": [1]})
    assert not drained(lake)


def test_a_drain_must_lie_at_the_newest_batch_of_every_source(lake: Lake) -> None:
    decide(lake, NAME, {})
    at = {**here(lake), "clicks": SourcePosition(0)}
    assert not is_drained(lake.control.refresh(), at), "the source was added later"
