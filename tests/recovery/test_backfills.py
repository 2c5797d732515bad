"""`headgate backfill` and the driver that publishes its result are killed at every named place."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.lake.storage.layout import Layout
from tests.oracle import Tables, derive
from tests.recovery.test_loads import feeding
from tests.support.drivers import begin, headgate
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import NOON, declare, rules
from tests.support.rounds import in_full
from tests.support.tables import Row, read

pytestmark = pytest.mark.recovery

OF_THE_VERB = (
    "backfill.held",
    "backfill.silver_made",
    "backfill.compared",
    "backfill.reported",
    "backfill.asked",
)
# operation.taken_in is left out: the disk has nothing there that it lacks at operation.intended.
OF_THE_DRIVER = ("operation.intended", "operation.staged", "operation.table_done")
BEGIN, END = NOON + timedelta(minutes=5), NOON + timedelta(minutes=15)


def rows_of(rows: list[Row]) -> dict[tuple[object, ...], object]:
    keys = ("window_start", "band", "tenth")
    return {tuple(row[key] for key in keys): row["heaviest"] for row in rows if row["final"]}


@in_full
def test_a_changed_formula_is_published_once(tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    values = readings(900, seed=41)
    landing.write_all(split(values[:600], 3))
    declared = declare(tmp_path, landing.folder, gold=("bands",), max_files_per_batch=1)
    other = tmp_path / "other.txt"
    other.write_text(declared.text.replace("max(weight)", "min(weight)"))
    of = (declared.file, "--root", tmp_path / "root")
    range_ = ("gold.bands", "--from", f"{BEGIN:%FT%TZ}", "--to", f"{END:%FT%TZ}")
    asked = (*of[:1], *range_, *of[1:], "--declaration", other)
    assert headgate("run", *of, "--once").code == 0
    with feeding(landing, split(values[600:], 120)):
        assert headgate("start", *of).code == 0
        try:
            for place in OF_THE_VERB[:-1]:
                ended = headgate("backfill", *asked, "--publish", failpoint=place)
                assert ended.was_killed, place
            assert {row["revision"] for row in read(tmp_path / "root", "gold/bands")} == {0}
        finally:
            assert headgate("stop", *of).code == 0
        assert headgate("backfill", *asked, "--publish", failpoint=OF_THE_VERB[-1]).was_killed
        for place in OF_THE_DRIVER:
            ended = begin("run", *of, failpoint=place).end()
            assert ended.was_killed, f"{place}: {ended.output}"
    assert headgate("run", *of, "--once").code == 0
    assert headgate("backfill", *asked, "--verify").code == 0
    ledger = headgate("ledger", *of, "--by-id", "--json")
    assert (ledger.code, json.loads(ledger.last_line)["by_id"]["holds"]) == (0, True)

    by_max, by_min = (expected(landing, function) for function in ("max", "min"))
    rows = read(tmp_path / "root", "gold/bands")
    changed = {
        place: (by_min if BEGIN <= place[0] < END else by_max)[place]  # type: ignore[operator]
        for place in by_max
    }
    assert rows_of(rows) == changed != by_max
    for row in rows:
        key = (row["window_start"], row["band"], row["tenth"])
        assert row["revision"] == (row["final"] and changed[key] != by_max[key])
    layout = Layout.of(str(tmp_path / "root"), declared.name)
    # Of the killed backfills, only the patches of the published one may be left.
    assert len(layout.storage.folders("_headgate/backfills")) <= 1


def expected(landing: Landing, function: str) -> dict[tuple[object, ...], object]:
    told = rules(gold=("bands",))
    bands = told.gold["bands"]
    measures = {
        **bands.measures,
        "heaviest": replace(bands.measures["heaviest"], function=function),
    }
    told = replace(told, gold={"bands": replace(bands, measures=measures)})
    tables: Tables = derive(landing.records(), told)
    return rows_of(list(tables.gold["bands"]))
