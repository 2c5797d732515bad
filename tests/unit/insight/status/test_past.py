"""What is reported of loads, replays and backfills, over a small pipeline's documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
from headgate.history.loads.requests import LoadRequest, LoadState
from headgate.insight.status.past import SHOWN, past
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table
from tests.support.decisions import append, at
from tests.support.loads import begin_load, change_load
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
    name = lake.pipeline.name
    for number in range(SHOWN + 1):
        begin_load(lake.layout, name, LoadRequest(f"2026-{number:02d}", "events", PLAN, "me", NOW))

    def loads() -> Sequence[LoadState]:
        return past(lake.layout, lake.pipeline, lake.control.refresh()).loads

    (newest, *_, oldest) = loads()
    assert (newest.id, oldest.id) == (f"2026-{SHOWN:02d}", "2026-01")
    assert (newest.state, newest.read, newest.total, newest.rows) == ("reading", 0, 3, 0)
    bronze = Table(lake.layout.storage, "bronze/events", pipeline=lake.pipeline.name)
    state = bronze.refresh()
    has = Load(newest.id, 1, state.n, {"sequence": 3}, 50)
    payload = replace(BronzePayload.of(state), loads=(has,))
    bronze.commit(replace(state.held("fence", bronze.epoch), payload=payload))
    newest = loads()[0]
    assert (newest.state, newest.read, newest.rows) == ("folding", 3, 50)
    request = requests.find_load(lake.layout, name, newest.id)
    assert request is not None
    change_load(lake.layout, name, request, wish="stopped", why="it is gone")
    newest = loads()[0]
    assert (newest.state, newest.why) == ("stopped", "it is gone")


def test_replays_and_backfills_are_told_newest_first(lake: Lake) -> None:
    late: dict[str, Any] = {"table": "per_minute"}
    append(lake.control, "late_replay", late | {"by": "me"}, at(events=4), NOW)
    append(lake.control, "drain", {}, at(events=4), NOW)
    append(lake.control, "late_replay", late, at(events=9), NOW)
    equal = TableReport("per_minute", 9, 5, 0, 0, 0, 5, 5, live="a", backfilled="a")
    for day in range(2):
        begin = NOW + timedelta(days=day)
        table = replace(equal, changed=day, windows=5 * day)
        write_report(
            lake.layout,
            BackfillReport(
                *(f"b-{day}", "tiny", NOW, begin, begin + timedelta(days=1), "d", (table,)),
                published=PublishedBackfill(day + 3, "s1") if day else None,
                by_end=bool(day),
            ),
        )
    found = past(lake.layout, lake.pipeline, lake.control.refresh())
    assert [(each.number, each.n, each.by) for each in found.replays] == [(3, 9, ""), (1, 4, "me")]
    assert [(each.id, each.differing) for each in found.backfills] == [
        ("b-1", ("per_minute",)),
        ("b-0", ()),
    ]
    assert [each.empty for each in found.backfills] == [False, True]
    assert [each.by_end for each in found.backfills] == [True, False]
    assert [each.taken_back for each in found.backfills] == [True, False]
    append(lake.control, "backfill", {"backfill": "b-1"}, at(events=9), NOW)
    found = past(lake.layout, lake.pipeline, lake.control.refresh())
    assert [each.taken_back for each in found.backfills] == [False, False]
