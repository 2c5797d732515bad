"""When another drain would change nothing."""

from __future__ import annotations

from headgate.declaration.graph import graph_of
from headgate.flow.operations.carrying_out import intend_operation
from headgate.flow.operations.drain import NAME, is_drained
from headgate.lake.tables.snapshot import head_table
from tests.unit.history.savepoints.conftest import NOW, add_batch, lake
from tests.unit.insight.ledger.conftest import Lake

__all__ = ["lake"]  # a fixture


def test_a_drain_is_in_force_until_the_next_batch_or_operation(lake: Lake) -> None:
    bronze, graph = head_table(lake.layout, lake.pipeline), graph_of(lake.pipeline)
    assert not is_drained(bronze.refresh())
    bronze.fence(1)
    intend_operation(bronze, graph, NAME, {}, NOW)
    assert is_drained(bronze.refresh())
    replay: dict[str, object] = {"table": "per_minute", "from": None, "to": None, "keys": {}}
    intend_operation(bronze, graph, "late_replay", replay, NOW)
    assert not is_drained(bronze.refresh())
    intend_operation(bronze, graph, NAME, {}, NOW)
    assert is_drained(bronze.refresh())
    add_batch(lake, bronze.state.n + 1)
    assert not is_drained(bronze.refresh())
