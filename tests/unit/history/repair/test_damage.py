"""Every part of a pipeline's folder is damaged in every way. After the repair, the tables are as if
there had been no damage; or the repair is refused, and changes nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline, Publication
from headgate.history.repair.apply import apply
from headgate.history.repair.examine import examine
from headgate.history.repair.plan import CannotRepairError, Plan
from headgate.history.savepoints.resets import ResetTarget
from headgate.lake.tables.agreement import require_agreement, states_of
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.table import Table
from tests.support.damage import HARMS, harm
from tests.support.decisions import reset_to
from tests.support.rounds import some
from tests.unit.history.repair.conftest import (
    ASIDE,
    BRONZE,
    BUILT,
    FILES,
    GOLD,
    LATE,
    NOW,
    SILVER,
    TIME,
    Lake,
    of_two,
)

pytestmark = pytest.mark.slow

TABLES = (BRONZE, ASIDE, SILVER[0], LATE[0], GOLD[0], FILES)
CASES = list(product(TABLES, HARMS))
UNSEEN = (GOLD[0], "missing")
"""No table counts what gold has folded, so a missing last batch of gold is not noticed."""
GIVEN = (BRONZE, FILES)
"""Tables that are built from no other one."""
EARLIER = [(*case, back) for back in (2, 5) for case in CASES if (back, case[0]) != (5, FILES)]


def repaired(lake: Lake, scratch: Path) -> None:
    """Damage is found and repaired, and is not found again. Then the pipeline goes on."""
    plan = lake.examine(scratch / "before")
    assert plan.is_damage, "nothing was found"
    assert plan.refusal is None
    lake.repair(plan)
    again = lake.examine(scratch / "after")
    assert not again.is_needed, again
    assert not again.is_damage
    lake.open()
    lake.run()


def refused(lake: Lake, scratch: Path) -> Plan:
    """Damage is found, and nothing is changed."""
    files = {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file()}
    plan = lake.examine(scratch / "refused")
    assert plan.is_damage
    assert plan.refusal is not None
    with pytest.raises(CannotRepairError, match="if there is a backup of"):
        lake.repair(plan)
    assert {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file()} == files
    return plan


@pytest.mark.parametrize(("path", "how"), some([c for c in CASES if c != UNSEEN], 7))
def test_the_newest_entry_of_a_log(lake: Lake, tmp_path: Path, path: str, how: str) -> None:
    before, files = lake.all_rows(), lake.recorded()
    harm(lake.entries(path)[-1], how)
    if how == "missing":
        # That was a fence without data. If the batch before it is missing too, the tables disagree.
        assert not lake.examine(tmp_path / "fence").findings
        harm(lake.entries(path)[-1], how)
    if (path, how) == (FILES, "missing"):
        refused(lake, tmp_path)  # bronze has read a file that has no sequence any more
        return
    repaired(lake, tmp_path)
    assert lake.all_rows() == before
    assert lake.recorded() == files


def test_a_newest_entry_that_nobody_misses_is_made_again(lake: Lake, tmp_path: Path) -> None:
    before, (path, how) = lake.all_rows(), UNSEEN
    for entry in lake.entries(path)[-2:]:  # a batch, and a fence
        harm(entry, how)
    assert not lake.examine(tmp_path / "unseen").findings
    lake.open()
    lake.run()
    assert lake.all_rows() == before


@pytest.mark.parametrize(("path", "how", "behind"), some(EARLIER, 13, start=3))
def test_an_earlier_entry_of_a_log(
    lake: Lake, tmp_path: Path, path: str, how: str, behind: int
) -> None:
    before, files = lake.all_rows(), lake.recorded()
    harm(lake.entries(path)[-behind], how)
    if how == "flipped":
        # Its files are the same, and every table has processed its batch.
        assert [finding.harmless for finding in lake.examine(tmp_path).findings] == [True]
        return
    if path in GIVEN:
        refused(lake, tmp_path)
        return
    repaired(lake, tmp_path)
    assert lake.all_rows() == before
    assert lake.recorded() == files


@pytest.mark.parametrize(("case", "which"), some(list(product(CASES, (0, -1))), 13, start=4))
def test_a_data_file(lake: Lake, tmp_path: Path, case: tuple[str, str], which: int) -> None:
    before, files = lake.all_rows(), lake.recorded()
    path, how = case
    harm(lake.data_files(path)[which], how)
    if path in GIVEN:
        refused(lake, tmp_path)
        return
    repaired(lake, tmp_path)
    assert lake.all_rows() == before
    assert lake.recorded() == files


@pytest.mark.parametrize(("path", "how"), some(CASES, 7, start=1))
def test_a_delta_checkpoint(lake: Lake, tmp_path: Path, path: str, how: str) -> None:
    DeltaTable(lake.layout.storage.uri(path)).create_checkpoint()
    lake.open()
    lake.run(1)
    before, files = lake.all_rows(), lake.recorded()
    (checkpoint,) = lake.folder(path).glob("_delta_log/*.checkpoint.parquet")
    harm(checkpoint, how)
    if lake.examine(tmp_path / "look").is_needed:
        repaired(lake, tmp_path)
    else:
        assert how == "flipped", "only bytes that say nothing may be flipped unseen"
    assert lake.all_rows() == before
    assert lake.recorded() == files


@pytest.mark.parametrize(
    ("path", "how"), some(list(product((GOLD[0], BRONZE), ("truncated", "emptied", "misspelt"))), 2)
)
def test_the_hint_of_a_log(lake: Lake, tmp_path: Path, path: str, how: str) -> None:
    DeltaTable(lake.layout.storage.uri(path)).create_checkpoint()
    before = lake.all_rows()
    hint = lake.folder(path) / "_delta_log/_last_checkpoint"
    if how == "misspelt":
        hint.write_text(hint.read_text().replace('"version":', '"versiom":'))
    else:
        harm(hint, how)
    repaired(lake, tmp_path)
    assert lake.all_rows() == before


def test_an_entry_that_nobody_needs_is_no_alarm(lake: Lake, tmp_path: Path) -> None:
    """The last checkpoint includes the entry, and every table has processed its batch."""
    DeltaTable(lake.layout.storage.uri(SILVER[0])).create_checkpoint()
    harm(lake.entries(SILVER[0])[3], "truncated")
    plan = lake.examine(tmp_path / "look")
    assert [finding.harmless for finding in plan.findings] == [True]
    assert not plan.is_needed


def test_an_entry_that_gold_has_still_to_read(lake: Lake, tmp_path: Path) -> None:
    lake.land_more(2)
    for end in (7, 8):
        lake.ingest(end)
        lake.catch_up_silver()
    DeltaTable(lake.layout.storage.uri(SILVER[0])).create_checkpoint()
    harm(lake.entries(SILVER[0])[-2], "truncated")
    repaired(lake, tmp_path)
    assert lake.tables[GOLD[0]].refresh().n == 8


def add_undeclared(lake: Lake) -> Table:
    table = Table(lake.layout.storage, "gold/of_old", pipeline="tiny")
    schema = pa.schema([("window_start", TIME), ("final", pa.bool_())])
    table.create(schema, "digest", time_column="window_start")
    table.commit(table.refresh().advanced_to(3, NOW))
    return table


@pytest.mark.parametrize(("version", "how"), [(0, "emptied"), (1, "flipped"), (1, "emptied")])
def test_the_log_of_a_table_that_nobody_declares(
    lake: Lake, tmp_path: Path, version: int, how: str
) -> None:
    """It stops every start, because the epochs in it are unknown. So it has to be repaired."""
    before = lake.all_rows()
    add_undeclared(lake)
    harm(lake.entries("gold/of_old")[version], how)
    repaired(lake, tmp_path)
    assert lake.all_rows() == before


def test_bronze_goes_back_and_what_nobody_declares_loses_its_place(
    lake: Lake, tmp_path: Path
) -> None:
    """If it were declared again, it would go on after batches that bronze no longer has."""
    table = add_undeclared(lake)
    harm(lake.entries(BRONZE)[-1], "missing")
    harm(lake.entries(BRONZE)[-1], "missing")
    repaired(lake, tmp_path)
    state = table.refresh()
    assert (state.n, state.definition) == (0, "")


@pytest.mark.parametrize("how", ["truncated", "missing"])
def test_what_the_end_of_bronze_may_have_had_is_said(lake: Lake, tmp_path: Path, how: str) -> None:
    for entry in lake.entries(BRONZE)[-2:]:
        harm(entry, how)
    said = [each for each in lake.examine(tmp_path).descriptions if each.startswith(BRONZE)]
    assert any("a replay, drain or backfill since then has to be" in each for each in said), said


@of_two
def test_the_decision_that_tables_go_back_is_lost(lake: Lake, tmp_path: Path) -> None:
    """What the tables hold may come from other batches than those that bronze has now."""
    reset_to(lake.runtime.control, dict.fromkeys((BRONZE, *BUILT), ResetTarget()), NOW)
    decided = lake.tables[DECISIONS].refresh()
    assert decided.generation == 1
    lake.open()
    lake.run()
    before = lake.all_rows()
    for entry in lake.entries(DECISIONS)[decided.data_commit :]:
        harm(entry, "missing")
    assert set(lake.examine(tmp_path / "look").targets) == set(BUILT)
    repaired(lake, tmp_path)
    assert lake.all_rows() == before


@of_two
def test_what_is_rebuilt_with_a_damaged_table(lake: Lake, tmp_path: Path) -> None:
    """Only what is built on it, and its side table or the table that counts its rows."""
    harm(lake.data_files(GOLD[0])[0], "missing")
    assert set(lake.examine(tmp_path / "gold").targets) == {LATE[0], GOLD[0]}
    harm(lake.data_files(LATE[1])[1], "missing")
    assert set(lake.examine(tmp_path / "late").targets) == {*LATE, *GOLD}
    harm(lake.data_files(SILVER[0])[1], "missing")
    assert set(lake.examine(tmp_path / "silver").targets) == {SILVER[0], *GOLD, *LATE}


def test_a_publication_that_has_still_to_read_a_damaged_entry(lake: Lake, tmp_path: Path) -> None:
    """Its table is rebuilt, and the publication goes on after the newest entry."""
    file, path = lake.pipeline.file, "_headgate/publish/changes"
    file.write_text(
        f"{file.read_text()}\npublish:\n  changes:\n    from: gold.per_minute\n"
        "    kafka: {servers: '127.0.0.1:1', topic: changes}\n"
    )
    publishing = load(file)
    sent = Table(lake.layout.storage, path, pipeline="tiny")
    sent.create(pa.schema([("at", TIME)]), "digest", time_column="at")
    sent.commit(sent.refresh().advanced_to(0, NOW, PublicationPayload(3)))
    DeltaTable(lake.layout.storage.uri(GOLD[0])).create_checkpoint()
    harm(lake.entries(GOLD[0])[5], "truncated")
    newest = len(lake.entries(GOLD[0])) - 1
    plan = examine(lake.layout, publishing, tmp_path / "look", lambda *_: None)
    assert set(plan.targets) == {LATE[0], GOLD[0]}
    assert plan.positions == {path: newest}
    apply(lake.layout, publishing, plan, lake.epoch + 1, NOW)
    assert PublicationPayload.of(sent.reader().refresh()).version == newest
    assert not examine(lake.layout, publishing, tmp_path / "again", lambda *_: None).is_needed


def publishing_events(lake: Lake) -> tuple[Pipeline, Table]:
    """A publication of the events of a gate, and its position: it has sent an event at version 3 of
    gold."""
    gate = Publication("events", "gate", "per_minute", None, "kafka", None)
    sent = Table(lake.layout.storage, "_headgate/publish/events", pipeline="tiny")
    sent.create(pa.schema([("at", TIME)]), "digest", time_column="at")
    sent.commit(sent.refresh().advanced_to(0, NOW, PublicationPayload(3, "17-3")))
    return replace(lake.pipeline, publish={"events": gate}), sent


def test_a_publication_of_events_reads_no_entry(lake: Lake, tmp_path: Path) -> None:
    """Its position follows the table only after an event or a thousand commits."""
    publishing, sent = publishing_events(lake)
    DeltaTable(lake.layout.storage.uri(GOLD[0])).create_checkpoint()
    harm(lake.entries(GOLD[0])[5], "truncated")
    before = lake.rows(GOLD[0])
    plan = examine(lake.layout, publishing, tmp_path / "look", lambda *_: None)
    assert not plan.is_needed
    assert not plan.is_damage
    assert [finding.harmless for finding in plan.findings] == [True]
    apply(lake.layout, publishing, plan, lake.epoch + 1, NOW)
    assert lake.rows(GOLD[0]) == before
    assert PublicationPayload.of(sent.reader().refresh()) == PublicationPayload(3, "17-3")


def test_a_publication_of_a_table_that_is_gone(lake: Lake, tmp_path: Path) -> None:
    """Its position goes back, or every start would find the new table behind it."""
    publishing, sent = publishing_events(lake)
    before = lake.rows(GOLD[0])
    shutil.rmtree(lake.folder(GOLD[0]))
    plan = examine(lake.layout, publishing, tmp_path / "look", lambda *_: None)
    assert plan.positions == {sent.name: 0}
    lake.epoch += 1
    apply(lake.layout, publishing, plan, lake.epoch, NOW)
    require_agreement(publishing, states_of(lake.layout, publishing))
    assert not examine(lake.layout, publishing, tmp_path / "again", lambda *_: None).is_needed
    lake.open()
    lake.run()
    assert lake.rows(GOLD[0]) == before


@pytest.mark.parametrize("is_lost", [True, False])
def test_no_event_is_sent_again_after_its_table_lost_its_log(
    lake: Lake, tmp_path: Path, is_lost: bool
) -> None:
    """The position goes back with the table, or every start would find it ahead."""
    publishing, sent = publishing_events(lake)
    for entry in lake.entries(GOLD[0])[0 if is_lost else 2 :]:
        harm(entry, "missing" if not is_lost else "truncated")
    newest = 0 if is_lost else 1
    plan = examine(lake.layout, publishing, tmp_path / "look", lambda *_: None)
    assert plan.positions == {sent.name: newest}
    apply(lake.layout, publishing, plan, lake.epoch + 1, NOW)
    assert PublicationPayload.of(sent.reader().refresh()) == PublicationPayload(newest, "17-3")
    assert not examine(lake.layout, publishing, tmp_path / "again", lambda *_: None).is_needed


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_unfinished_reset_is_finished_or_its_table_is_rebuilt(
    lake: Lake, tmp_path: Path, is_damaged: bool
) -> None:
    savepoint = lake.take()
    lake.run(2)
    before = lake.all_rows()
    targets = {path: savepoint.tables[path].target for path in (GOLD[0], LATE[0])}
    reset_to(lake.runtime.control, targets, NOW)
    if is_damaged:
        (file,) = (f for f in lake.data_files(GOLD[0]) if "0-5-" in str(f))
        harm(file, "flipped")
    plan = lake.examine(tmp_path / "look")
    assert plan.is_damage == is_damaged
    assert plan.targets == ({GOLD[0]: ResetTarget(), LATE[0]: ResetTarget()} if is_damaged else {})
    assert plan.is_needed
    lake.repair(plan)
    assert not lake.examine(tmp_path / "again").is_needed
    lake.open()
    lake.run()
    assert lake.all_rows() == before
