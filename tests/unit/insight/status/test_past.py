"""What is reported of loads, replays and backfills, over a small pipeline's documents."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.flow.sources.loading import LoadPlan
from headgate.history.backfill.report import (
    BackfillReport,
    PublishedBackfill,
    TableReport,
    write_report,
)
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest
from headgate.insight.status.past import SHOWN, past
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = LoadPlan({"sequence": 0}, {"sequence": 3}, "3 files of a", "files")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake)
    return lake


def test_a_load_is_as_far_as_bronze_says(lake: Lake) -> None:
    for number in range(SHOWN + 1):
        id_ = f"2026-{number:02d}"
        requests.write_request(lake.layout, LoadRequest(id_, "events", PLAN, "me", NOW))
    (newest, *_, oldest) = past(lake.layout, lake.pipeline, ()).loads
    assert (newest.id, oldest.id) == (f"2026-{SHOWN:02d}", "2026-01")
    assert (newest.state, newest.read, newest.total, newest.rows) == ("reading", 0, 3, 0)
    bronze = Table(lake.layout.storage, "bronze/events", pipeline=lake.pipeline.name)
    state = bronze.refresh()
    has = Load(newest.id, 1, state.n, {"sequence": 3}, 50, "me")
    payload = replace(BronzePayload.of(state), loads=(has,))
    bronze.commit(replace(state.held("fence", bronze.epoch), payload=payload))
    newest = past(lake.layout, lake.pipeline, ()).loads[0]
    assert (newest.state, newest.read, newest.rows) == ("folding", 3, 50)
    request = requests.find_request(lake.layout, newest.id)
    assert request is not None
    requests.change_request(lake.layout, request, wish="stopped", why="it is gone")
    newest = past(lake.layout, lake.pipeline, ()).loads[0]
    assert (newest.state, newest.why) == ("stopped", "it is gone")


def test_replays_and_backfills_are_told_newest_first(lake: Lake) -> None:
    operations = [
        Operation(1, "late_replay", 4, {"table": "per_minute", "by": "me"}),
        Operation(2, "drain", 4, {}),
        Operation(3, "late_replay", 9, {"table": "per_minute"}),
    ]
    equal = TableReport("per_minute", 9, 5, 0, 0, 0, 5, 5, live="a", backfilled="a")
    for day in range(2):
        begin = NOW + timedelta(days=day)
        table = replace(equal, changed=day, windows=5 * day)
        write_report(
            lake.layout,
            BackfillReport(
                *(f"b-{day}", "tiny", NOW, begin, begin + timedelta(days=1), "d", (table,)),
                published=PublishedBackfill(day + 4, "s1") if day else None,
                by_end=bool(day),
            ),
        )
    found = past(lake.layout, lake.pipeline, operations)
    assert [(each.number, each.n, each.by) for each in found.replays] == [(3, 9, ""), (1, 4, "me")]
    assert [(each.id, each.differing) for each in found.backfills] == [
        ("b-1", ("per_minute",)),
        ("b-0", ()),
    ]
    assert [each.empty for each in found.backfills] == [False, True]
    assert [each.by_end for each in found.backfills] == [True, False]
    assert [each.taken_back for each in found.backfills] == [True, False]
    operations.append(Operation(5, "backfill", 9, {"backfill": "b-1"}))
    found = past(lake.layout, lake.pipeline, operations)
    assert [each.taken_back for each in found.backfills] == [False, False]
