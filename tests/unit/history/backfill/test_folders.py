"""The folders of backfills: who holds them, and when they are deleted."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headgate.declaration.graph import graph_of
from headgate.flow.operations.backfill import Patch
from headgate.flow.operations.carrying_out import decide_operation
from headgate.history.backfill.folders import SCRATCH, remove_ended_backfills
from headgate.history.backfill.report import KEPT, BackfillReport, backfill_reports, write_report
from headgate.history.savepoints.holds import FOLDER, held_reads, holding, is_held, record_hold
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.history.savepoints.verify import verify_savepoint
from headgate.lake.control.requests import remove_request, send_request, waiting_requests
from headgate.lake.storage.layout import Layout
from tests.support.decisions import append
from tests.unit.history.savepoints.conftest import NOW, here, lake
from tests.unit.insight.ledger.conftest import Lake

__all__ = ["lake"]  # a fixture

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATCH = f"{FOLDER}/old/t.patch/rows.parquet"
REPORT = BackfillReport("", "tiny", NOON, NOON, None, "digest", ())
HOLD = """
import sys
from headgate.history.savepoints.holds import holding
from headgate.lake.storage.layout import Layout
with holding(Layout.of(sys.argv[1], sys.argv[2]), sys.argv[3]):
    print("held", flush=True)
    sys.stdin.read()
"""


def leave(layout: Layout, name: str) -> None:
    """Create the files that a killed backfill leaves behind."""
    with holding(layout, name) as folder:
        layout.storage.write(f"{folder}/{SCRATCH}/rows.parquet", b"rows")
        layout.storage.write(f"{folder}/t.patch/rows.parquet", b"patch")


def files(layout: Layout) -> set[str]:
    found = layout.storage.at(FOLDER).list("", recursive=True)
    return {stat.path for stat in found if not stat.path.endswith("lock")}


def request(lake: Lake, name: str) -> dict[str, object]:
    return {"backfill": name, "generation": 0, "tables": {"per_minute": {"path": "", "digest": ""}}}


@pytest.mark.slow
def test_the_newest_reports_are_kept(lake: Lake) -> None:
    ids = [f"{NOON + timedelta(minutes=number):%Y%m%d-%H%M%S}-a" for number in range(KEPT + 2)]
    for id_ in ids:
        write_report(lake.layout, replace(REPORT, id=id_))
    lake.layout.storage.write(f"{FOLDER}/{ids[3]}.json", b"damaged")
    found = [report.id for report in backfill_reports(lake.layout)]
    assert found == [id_ for id_ in reversed(ids[2:]) if id_ != ids[3]]


def test_what_ended_backfills_have_left_goes_and_patches_in_use_stay(lake: Lake) -> None:
    for name in ("killed", "waits", "done"):
        leave(lake.layout, name)
    send_request(lake.layout, "backfill", request(lake, "waits"), NOW)
    graph, document = graph_of(lake.pipeline), request(lake, "done")
    decide_operation(lake.control, graph, "backfill", document, here(lake), NOW)
    kept = {"waits/t.patch/rows.parquet", "done/t.patch/rows.parquet"}
    for _ in range(2):
        remove_ended_backfills(lake.layout, lake.pipeline)
        assert files(lake.layout) == kept
    remove_request(lake.layout, waiting_requests(lake.layout)[0])
    remove_ended_backfills(lake.layout, lake.pipeline)
    assert files(lake.layout) == {"done/t.patch/rows.parquet"}


def test_a_savepoint_keeps_the_patches_that_it_needs(lake: Lake) -> None:
    """Bronze has gone back to a savepoint before the backfill, and may go to the one after it."""
    leave(lake.layout, "old")
    before = create_savepoint(lake.layout, lake.pipeline, NOW)
    patches = {"tables": {"per_minute": vars(Patch(PATCH, "", "", 0, (0, 0)))}}
    append(lake.control, "backfill", {**request(lake, "old"), **patches}, here(lake), NOW)
    after = create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=1))
    restore_savepoint(lake.layout, lake.pipeline, before, 7, NOW, reread=True)
    remove_ended_backfills(lake.layout, lake.pipeline)
    assert files(lake.layout) == {"old/t.patch/rows.parquet"}
    assert verify_savepoint(lake.layout, "tiny", after) == ()
    lake.layout.storage.remove(PATCH)
    (problem,) = verify_savepoint(lake.layout, "tiny", after)
    assert problem.what == f"{PATCH}, which a published backfill needs, is missing"


@pytest.mark.slow
def test_a_running_backfill_keeps_its_folder_and_what_it_reads_until_it_is_killed(
    lake: Lake,
) -> None:
    leave(lake.layout, "running")
    root, pipeline = lake.layout.storage.root.rsplit("/", 1)
    command = [sys.executable, "-c", HOLD, root, pipeline, "running"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert is_held(lake.layout, "running")
        before = files(lake.layout)
        remove_ended_backfills(lake.layout, lake.pipeline)
        assert files(lake.layout) == before
        reads = create_savepoint(lake.layout, lake.pipeline, NOW)
        record_hold(lake.layout, "running", reads)
        assert [*held_reads(lake.layout)] == [reads]
    finally:
        process.kill()
        process.communicate()
    assert not is_held(lake.layout, "running")
    assert [*held_reads(lake.layout)] == []
    remove_ended_backfills(lake.layout, lake.pipeline)
    assert files(lake.layout) == set()


@pytest.mark.parametrize("damage", [b"", b"{}"])
def test_a_damaged_hold_protects_nothing_and_stops_no_vacuum(lake: Lake, damage: bytes) -> None:
    with holding(lake.layout, "running") as folder:
        lake.layout.storage.write(f"{folder}/reads.json", damage)
        assert [*held_reads(lake.layout)] == []
