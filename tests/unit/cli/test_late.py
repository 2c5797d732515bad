"""Which late rows a command selects, and the document of its replay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from headgate.cli.declaration import gold_table
from headgate.cli.late import (
    LateCount,
    _state,
    nothing_meant,
    selection,
)
from headgate.declaration.model import GoldTable
from headgate.errors import HeadgateError, UsageError
from headgate.lake.control import requests
from tests.support.decisions import append, at
from tests.support.readings import declare
from tests.unit.cli.conftest import AT, hold
from tests.unit.insight.ledger.conftest import Lake

DAY = 86_400_000_000  # microseconds


@pytest.fixture
def bands(tmp_path: Path) -> GoldTable:
    return gold_table(declare(tmp_path, tmp_path), "gold.bands")


def test_a_table_has_its_name_with_and_without_the_layer(tmp_path: Path) -> None:
    declared = declare(tmp_path, tmp_path)
    assert gold_table(declared, "bands") is gold_table(declared, "gold.bands")
    with pytest.raises(UsageError, match="no gold table 'gold.band'") as refused:
        gold_table(declared, "gold.band")
    assert "gold.bands" in refused.value.remedy


def test_times_and_keys_are_the_document_of_a_replay(bands: GoldTable) -> None:
    keys = ["band=high=er", "tenth=null"]
    assert selection(bands, "1970-01-02", "1970-01-03 00:00:00.000001", keys) == {
        "table": "bands",
        "from": DAY,
        "to": 2 * DAY + 1,
        "keys": {"band": "high=er", "tenth": None},
    }
    assert selection(bands, None, None, None) == {
        "table": "bands",
        "from": None,
        "to": None,
        "keys": {},
    }


def test_a_duration_counts_back_from_now(bands: GoldTable) -> None:
    before = datetime.now(UTC)
    found = selection(bands, "2 hours", None, None)["from"]
    assert 0 <= found / 1e6 - before.timestamp() + 7200 < 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((None, None, ["site=a"]), "no column 'site' in by; there are: band, tenth"),
        ((None, None, ["band"]), "'band' is not NAME=VALUE"),
        ((None, None, ["band=a", "band=b"]), "band is given twice"),
        (("2026-01-02", "2026-01-01", None), "not after --from"),
        (("soon", None, None), "neither a time"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    bands: GoldTable, given: tuple[str | None, str | None, list[str] | None], said: str
) -> None:
    with pytest.raises(typer.BadParameter, match=said):
        selection(bands, *given)


def test_a_range_without_a_late_row_says_where_others_are() -> None:
    day = datetime(2026, 1, 2, tzinfo=UTC)
    count = LateCount("bands", 3, 0, day, day)
    said = nothing_meant(count, "2 days", None, ["band=a"])
    assert said.startswith("no late row matches --from 2 days --key band=a; 3 wait")
    assert "from 2026-01-02 00:00:00Z to 2026-01-02 00:00:00Z" in said
    none = replace(count, waiting=0)
    assert nothing_meant(none, "2 days", None, None) == "no late row waits"


def test_a_replay_of_a_held_table_says_so_at_once(gated: Lake) -> None:
    declared, layout = gated.pipeline, gated.layout
    table = gold_table(declared, "gold.per_minute")
    request = requests.send_request(layout, "late_replay", {"table": "per_minute"}, AT)
    append(gated.control, request.kind, request.document, at(events=2), AT, request=request.id)
    assert _state(declared, layout, table, request) == (None, True)
    hold(gated)
    with pytest.raises(HeadgateError, match=r"gold/per_minute is held by its rules") as held:
        _state(declared, layout, table, request)
    assert held.value.exit_code == 10
