"""The account of a pipeline with several sources, each with batch ids of its own."""

from __future__ import annotations

from dataclasses import replace

from headgate.insight.ledger import balance, deployed
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources

two_sources = _two_sources


def test_each_source_balances_as_of_its_own_batches(two_sources: Lake) -> None:
    account = balance(two_sources.layout, two_sources.pipeline)
    assert account.differences == ()
    orders, clicks = account.sources
    assert (orders.source, orders.n, orders.read, orders.duplicate) == ("orders", 3, 6, 1)
    assert (orders.quarantined, clicks.quarantined) == (1, 0)
    assert (clicks.source, clicks.n, clicks.read, clicks.duplicate) == ("clicks", 1, 2, 0)
    assert (account.batches, account.read, account.duplicate, account.quarantined) == (4, 8, 1, 1)
    silver = [(each.table, each.source, each.lag) for each in account.silver]
    assert silver == [("paid", "orders", 1), ("seen", "clicks", 0)]
    gold = [(each.table, each.source, each.lag) for each in account.gold]
    assert gold == [("orders_per_minute", "orders", 1), ("clicks_per_minute", "clicks", 0)]


def test_the_document_has_the_facts_of_each_source(two_sources: Lake) -> None:
    document = balance(two_sources.layout, two_sources.pipeline).as_dict()
    assert {"n", "files", "gaps"}.isdisjoint(document)
    assert (document["read"], document["generation"]) == (8, 0)
    counts = dict.fromkeys(("replayed", "duplicate", "differing", "quarantined", "corrected"), 0)
    rest = {"n": 1, "read": 2, "files": (), "gaps": ()}
    assert document["sources"]["clicks"] == counts | rest
    assert document["silver"]["seen"]["source"] == "clicks"
    assert document["gold"]["orders_per_minute"]["source"] == "orders"


def test_a_difference_is_that_of_one_source(two_sources: Lake) -> None:
    silver = Table(two_sources.layout.storage, "silver/seen", pipeline="shop")
    state = silver.refresh()
    two_sources.start()
    silver.fence(two_sources.epoch)
    wrong = {**state.total, "silver": 1, "filtered": 1}
    silver.commit(replace(silver.refresh(), kind="data", total=wrong))
    account = balance(two_sources.layout, two_sources.pipeline)
    assert [each.table for each in account.differences] == ["silver/seen", "gold/clicks_per_minute"]


def test_each_row_is_proved_by_id_in_its_source(two_sources: Lake) -> None:
    proof = by_id(two_sources.layout, two_sources.pipeline)
    assert (proof.findings, proof.sources) == ((), {"orders": 6, "clicks": 2})
    assert proof.as_dict()["sources"]["clicks"] == {"rows": 2}


def test_a_source_that_is_not_deployed_yet_is_left_out(two_sources: Lake) -> None:
    storage, pipeline = two_sources.layout.storage, two_sources.pipeline
    for path in [path for path in pipeline.definitions if "orders" in path or "paid" in path]:
        storage.remove(path)
    storage.remove(Layout.declaration(pipeline.digest))
    account = balance(two_sources.layout, deployed(two_sources.layout, pipeline))
    assert account.balanced
    assert [each.source for each in account.sources] == ["clicks"]
