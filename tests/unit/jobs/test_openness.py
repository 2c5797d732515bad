"""Whether an operation is open, and how often that takes a look at gold."""

from __future__ import annotations

from headgate.jobs.operations import Openness
from tests.unit.jobs.conftest import Tables


def looked_at_gold(tables: Tables, openness: Openness, batches: int) -> int:
    """Looks at gold tables over some batches that found nothing open."""
    before = sum(count for path, count in tables.refreshed.items() if path.startswith("gold/"))
    assert not any(openness.is_open() for _ in range(batches))
    after = sum(count for path, count in tables.refreshed.items() if path.startswith("gold/"))
    return after - before


def test_without_an_operation_gold_is_never_looked_at(tables: Tables) -> None:
    openness = Openness(tables.medallion)
    assert looked_at_gold(tables, openness, batches=50) == 0
    assert tables.refreshed["bronze/b"] == 50


def test_an_intent_is_open_until_every_gold_table_has_it(tables: Tables) -> None:
    openness = Openness(tables.medallion)
    tables.commit("bronze/b", kind="operation", operation=1)
    assert openness.is_open()
    tables.commit("gold/one", kind="operation", operation=1)
    assert openness.is_open()
    tables.commit("gold/two", kind="operation", operation=1)
    assert looked_at_gold(tables, openness, batches=1) == 2
    assert looked_at_gold(tables, openness, batches=50) == 0
    tables.commit("bronze/b", kind="operation", operation=2)
    assert openness.is_open()


def test_a_new_driver_looks_once_at_what_was_carried_out_before_it(tables: Tables) -> None:
    for path in ("bronze/b", "gold/one", "gold/two"):
        tables.commit(path, kind="operation", operation=3)
    assert looked_at_gold(tables, Openness(tables.medallion), batches=50) == 2
    tables.commit("bronze/b", kind="operation", operation=4)
    assert Openness(tables.medallion).is_open()
