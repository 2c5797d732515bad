"""Arrays whose items are rows: every item of every record is in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Explode
from headgate.driver.task import RebuildRequest
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.history.savepoints.deployment import deployment_of
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.insight.querying.sql import select
from headgate.lake.tables.errors import MiscountedError
from headgate.lake.tables.frames import Projection
from tests.oracle import Explode as ExplodeRules
from tests.oracle import Replay
from tests.support.backfilled import backfill, unequal
from tests.support.declared import source_of
from tests.support.engine import Engine
from tests.support.exploded_project import ORACLE, ExplodedProject, order, orders
from tests.support.failing import dying
from tests.support.tables import Row

pytestmark = pytest.mark.spark

CORRECTION = "replace(value, '-1.00', '3.00')"


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> ExplodedProject:
    return ExplodedProject(tmp_path, spark)


@pytest.mark.parametrize("sizes", [(90,), (7, 1, 40, 42), (30, 30, 30)])
def test_tables_are_as_the_oracle_says_in_any_batches(
    project: ExplodedProject, sizes: Sequence[int]
) -> None:
    sent = orders(90, seed=4)
    engine = project.engine()
    for number, size in enumerate(sizes):
        project.land([next(sent) for _ in range(size)])
        if number == 1:
            engine = project.engine()
        engine.run_all()
    project.compare()
    proof = project.prove(engine)
    clean, tags = balance(engine.layout, engine.pipeline).silver
    assert proof.items.keys() == {"silver/clean", "silver/tags"}
    for counted in (clean.empty, clean.rejected, clean.filtered, clean.replaced):
        assert counted
    assert clean.items
    assert tags.items
    assert (clean.read, tags.empty) == (90, 0)
    assert clean.empty is not None
    assert clean.exploded is not None
    assert clean.read == clean.duplicate + clean.quarantined + clean.empty + clean.exploded
    assert clean.items == clean.silver + clean.rejected + clean.filtered
    assert len(project.read("late/per_minute")) > 0
    everything = {0: max(each.offset for each in project.records())}
    operation = {"table": "per_minute", "from": None, "to": None, "keys": {"sku": "tea"}}
    engine.operate("late_replay", **operation)
    engine.catch_up()
    project.compare([Replay(everything, "per_minute", keys={"sku": "tea"})])
    project.prove(engine)
    replayed = [row["replayed"] for row in project.read("late/per_minute")]
    assert set(replayed) == {None, 1}


def test_records_without_items_and_null_items(project: ExplodedProject) -> None:
    full = order("full", "2.50", None, order={"tags": ["x", None]})
    project.land([full, order("none"), order("null", items=None)])
    engine = project.engine().run_all()
    rows = project.read("silver/clean")
    assert [(row["_event_id"], row["_item"], row["of"]) for row in rows] == [
        ("full", 0, 2),
        ("full", 1, 2),
    ]
    assert [row["line"] for row in rows] == [
        {"sku": "s0", "price": Decimal("2.50"), "pieces": 1},
        None,
    ]
    assert "items" not in rows[0]
    kept = {(row["_event_id"], row["_item"], row["tag"]) for row in project.read("silver/tags")}
    assert kept == {("full", 0, "X"), ("full", 1, None), ("none", 0, None), ("null", 0, None)}
    clean, _ = balance(engine.layout, engine.pipeline).silver
    assert (clean.empty, clean.exploded, clean.items, clean.silver) == (2, 1, 2, 2)
    project.compare()
    assert project.prove(engine).as_dict()["items"] == {"silver/clean": 2, "silver/tags": 4}
    # If records without items had to be kept, their items would be missing.
    keeping = replace(engine.pipeline.silver["clean"], explode=Explode("line", "items", "keep"))
    other = replace(engine.pipeline, silver={"clean": keeping}, gold={})
    lost, empty, items = by_id(engine.layout, other).findings
    assert (lost.count, [each["event_id"] for each in lost.examples]) == (2, ["none", "null"])
    assert {each["item"] for each in lost.examples} == {0}
    assert (empty.count, items.count) == (0, 4)
    sql = "SELECT sku, events, revenue FROM per_minute ORDER BY sku"
    assert select(engine.pipeline, engine.layout, sql)[1] == [
        ("s0", 1, Decimal("2.50")),
        (None, 1, None),
    ]


def test_a_long_array(project: ExplodedProject) -> None:
    """Rejected items of one record have its bytes once."""
    count = 20_000
    project.land([order("long", *["-1.00", "2.00"] * (count // 2)), order("next", "1.00")])
    engine = project.engine().run_all()
    assert project.prove(engine).items["silver/clean"] == count + 1
    rejected = project.read("rejected/clean")
    assert {row["item"] for row in rejected} == set(range(0, count, 2))
    assert [row["item"] for row in rejected if row["value"] is not None] == [0]
    clean, _ = balance(engine.layout, engine.pipeline).silver
    assert (clean.silver, clean.rejected) == (count // 2 + 1, count // 2)


def refused(engine: Engine) -> list[tuple[str | None, list[int], list[str]]]:
    records = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline))
    found = records.rows(RefusedSelection())
    assert all(each.value for each in found)
    return [(each.event_id, list(each.items), list(each.reasons)) for each in found]


def clean_rows(project: ExplodedProject) -> dict[tuple[str, int], Row]:
    rows = project.read("silver/clean")
    found = {(row["_event_id"], row["_item"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_only_rejected_items_of_a_corrected_record_are_taken(project: ExplodedProject) -> None:
    """The second replay takes the item that the first one has left, and no other one."""
    project.land([order("a", "1.00", "-1.00", "-2.00", "4.00"), order("b", "5.00")])
    engine = project.engine().run_all()
    assert refused(engine) == [("a", [1, 2], ["priced"])]
    before = clean_rows(project)
    (outcome,) = project.outcomes(engine, RefusedSelection(), CORRECTION)
    assert (outcome.kind, outcome.tables) == ("silver", ("clean",))
    assert outcome.why == "clean still rejects item 2: priced"
    assert project.ask(engine, CORRECTION) == 1
    engine.take_in()
    project.prove(engine)
    after = clean_rows(project)
    assert after.keys() - before.keys() == {("a", 1)}
    assert {key: after[key] for key in before} == before
    assert (after["a", 1]["line"]["price"], after["a", 1]["_partition"]) == (Decimal(3), -1)
    clean, _ = balance(engine.layout, engine.pipeline).silver
    assert (clean.replaced, clean.duplicate, clean.exploded, clean.items) == (1, 0, 3, 6)
    assert refused(engine) == [("a", [2], ["priced"])]
    assert project.outcomes(engine, RefusedSelection(), None)[0].kind == "rejected"
    # The patch would change item 0, which is in silver: a replay never takes it again.
    patch = "replace(replace(value, '-2.00', '6.00'), '\"1.00\"', '\"9.00\"')"
    assert project.ask(engine, patch) == 1
    engine.take_in()
    project.prove(engine)
    last = clean_rows(project)
    assert last.keys() - after.keys() == {("a", 2)}
    assert {key: last[key] for key in after} == after
    assert refused(engine) == []


def test_a_copy_that_a_producer_sends_replaces_rejected_items_alone(
    project: ExplodedProject,
) -> None:
    project.land([order("a", "1.00", "-1.00")])
    engine = project.engine().run_all()
    project.land([order("a", "8.00", "9.00", "7.00", seconds=1), order("a", "8.00", "6.00")])
    engine.run_all()
    prices = {key: row["line"]["price"] for key, row in clean_rows(project).items()}
    assert prices == {("a", 0): Decimal(1), ("a", 1): Decimal(9)}
    project.compare()
    project.prove(engine)


def test_a_restart_and_a_rebuild_give_the_same_tables(project: ExplodedProject) -> None:
    sent = [*orders(60, seed=9)]
    project.land(sent[:30])
    engine = project.engine()
    engine.list_new()
    engine.ingest()
    with dying("rejected.committed"):
        engine.catch_up()
    engine = project.engine()
    engine.catch_up()
    project.land(sent[30:])
    engine.run_all()
    project.compare()
    again = project.engine(RebuildRequest(("silver/clean", "silver/tags")))
    again.catch_up()
    again.catch_up()
    project.compare()
    project.prove(again)
    assert unequal(backfill(again)) == []


def test_what_becomes_of_records_without_items_is_a_part_of_the_meaning(
    project: ExplodedProject,
) -> None:
    project.land(orders(40, seed=5))
    engine = project.engine().run_all()
    text = project.declaration.read_text()
    kept = text.replace("{line: items}", "{line: {array: items, empty: keep}}")
    project.declaration.write_text(kept)
    planned = deployment_of(engine.layout, load(project.declaration)).tables
    assert {plan.table: plan.action for plan in planned if plan.action != "resume"} == {
        "silver/clean": "rebuild",
        "gold/per_minute": "rebuild",
    }
    changed = project.engine(RebuildRequest(changed=True))
    changed.catch_up()
    changed.catch_up()
    clean = replace(ORACLE.silver["clean"], explode=ExplodeRules("line", "items", keeps_empty=True))
    project.compare(rules=replace(ORACLE, silver={**ORACLE.silver, "clean": clean}))
    project.prove(changed)
    assert balance(changed.layout, changed.pipeline).silver[0].empty == 0


def test_a_table_with_other_items_than_were_counted_is_refused(
    project: ExplodedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.land([order("a", "1.00", "2.00"), order("b", "3.00")])
    engine = project.engine()
    engine.list_new()
    engine.ingest()
    stage = engine.runtime.stages.silver["raw"]
    transform = stage._transforms["clean"]
    sized, exploded = transform._exploded
    lost = Projection("*")
    monkeypatch.setattr(lost, "of", lambda rows: exploded.of(rows).where("not line.price <=> 2"))
    monkeypatch.setattr(transform, "_exploded", (sized, lost))
    with pytest.raises(MiscountedError, match="2 of 3 items were counted"):
        engine.catch_up()
    assert not project.read("silver/clean")
    project.engine().catch_up()
    project.compare()


def test_a_rule_may_read_the_place_of_a_row(project: ExplodedProject) -> None:
    text = project.declaration.read_text()
    before, _, _ = text.partition("  tags:")
    project.declaration.write_text(f"{before}  all: {{from: raw, expectations: clean}}\n")
    project.write_rules("expectations:\n  - {id: first, expect: _item < 1}\n")
    project.land([order("a", "1.00", "2.00")])
    project.engine().run_all()
    assert clean_rows(project).keys() == {("a", 0)}
    assert [row["item"] for row in project.read("rejected/clean")] == [1]
    assert [row["_item"] for row in project.read("silver/all")] == [0]
    assert project.read("rejected/all") == []
