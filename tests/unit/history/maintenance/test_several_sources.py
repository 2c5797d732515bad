"""What must be kept of tables of several sources, each with batch ids of its own."""

from __future__ import annotations

import pytest

from headgate.history.maintenance.retention_context import RetentionContext, read_context
from headgate.lake.tables.decisions import REPLAY
from tests.support.decisions import append
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources

two_sources = _two_sources
OF_ORDERS = (
    *("_headgate/files/orders", "bronze/orders", "quarantine/orders"),
    *("silver/paid", "late/orders_per_minute", "gold/orders_per_minute"),
)


@pytest.fixture
def context(two_sources: Lake) -> RetentionContext:
    two_sources.savepoint()
    two_sources.catch_up()
    return read_context(two_sources.layout, two_sources.pipeline)


def test_a_table_keeps_what_its_own_source_needs(context: RetentionContext) -> None:
    (savepoint,) = context.savepoints
    for path in OF_ORDERS:
        assert (context.n(path), context.saved_n(savepoint, path)) == (3, 2)
    for path in ("bronze/clicks", "silver/seen", "gold/clicks_per_minute"):
        assert (context.n(path), context.saved_n(savepoint, path)) == (1, 1)


def test_a_table_whose_source_is_unknown_keeps_what_any_source_needs(
    two_sources: Lake, context: RetentionContext
) -> None:
    """The table may come back with its source, whose batch ids may be lower."""
    (savepoint,) = context.savepoints
    assert context.n("silver/gone") == context.saved_n(savepoint, "silver/gone") == 1


def test_steps_end_at_the_replays_of_their_own_source(
    two_sources: Lake, context: RetentionContext
) -> None:
    bronze = two_sources.runtime.bronze["clicks"].table
    document = {"source": "clicks", "rows": 1, "reason": "a test"}
    now, at = two_sources.clock(), two_sources.runtime.position()
    append(two_sources.runtime.control, REPLAY, document, at, now)
    held = bronze.refresh()
    bronze.commit(held.advanced_to(held.n + 1, now).counting({}))
    context = read_context(two_sources.layout, two_sources.pipeline)
    assert context.boundaries("silver/seen") == context.boundaries("bronze/clicks") == (1, 2)
    assert context.boundaries("silver/paid") == ()
