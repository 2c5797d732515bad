"""What `headgate ledger --recompute` prints, and its exit codes; the computation itself is not
run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headgate.cli import ledger as verb
from headgate.history.backfill.selection import EventTimeRange
from headgate.history.recompute.plan import WHOLE
from headgate.history.recompute.report import Recomputation, RecomputedTable
from headgate.lake.tables.row_changes import NO_ROWS, RowChange, RowChanges
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]
RIGHT = RecomputedTable("per_minute", 4, 7, 0, 0, 0, {}, NO_ROWS)
BEGIN = "2026-05-04 12:00:00"
WRONG = RecomputedTable(
    *("per_minute", 4, 7, 1, 1, 0, {"b1": 3}),
    RowChanges(
        *(("window_start",), (), ("events",)),
        rows=(
            RowChange(
                {"window_start": BEGIN, "events": "4"}, {"window_start": BEGIN, "events": "5"}
            ),
            RowChange(None, {"window_start": "2026-05-04 12:01:00", "events": "6"}),
        ),
        total=2,
    ),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """``table`` is the result of the computation; ``ranges`` are then those that were asked for."""
    found: dict[str, Any] = {"table": RIGHT}

    def recomputed(_: object, __: object, ranges: Mapping[str, EventTimeRange]) -> Recomputation:
        found["ranges"] = ranges
        return Recomputation((found["table"],))

    monkeypatch.setattr(verb, "recomputed", recomputed)
    return found


def test_equal_results_are_proved(
    ask: Ask, lake: Lake, of_lake: OfLake, asked: dict[str, Any]
) -> None:
    code, out, _ = ask("ledger", *of_lake, "--recompute")
    assert code == 0
    assert "every result is that of its definition" in out
    assert asked["ranges"] == {"per_minute": WHOLE}
    document = last_object(ask("ledger", *of_lake, "--recompute", "--json")[1])
    assert document["balanced"] is True
    assert document["recomputed"]["holds"] is True
    assert document["recomputed"]["tables"][0]["equal"] == 7


def test_wrong_results_are_shown_with_both_values(
    ask: Ask, lake: Lake, of_lake: OfLake, asked: dict[str, Any]
) -> None:
    asked["table"] = WRONG
    code, out, _ = ask("ledger", *of_lake, "--recompute")
    assert code == 1
    lines = [line.split() for line in out.splitlines()]
    assert ["2026-05-04", "12:00:00", "changed", "events", "4", "5"] in lines
    assert ["2026-05-04", "12:01:00", "missing", "all", "-", "events=6"] in lines
    assert "gold.per_minute: 3 results corrected by backfill b1" in out
    assert "gold.per_minute --from '2026-05-04 12:00:00'" in out
    code, out, _ = ask("ledger", *of_lake, "--recompute", "--json")
    document = last_object(out)
    assert (code, document["balanced"], document["recomputed"]["holds"]) == (1, False, False)
    (table,) = document["recomputed"]["tables"]
    assert (table["missing"], table["corrected"]) == (1, {"b1": 3})
    assert [row["change"] for row in table["rows"]["rows"]] == ["changed", "missing"]


def test_a_range_is_meant_in_event_time(
    ask: Ask, lake: Lake, of_lake: OfLake, asked: dict[str, Any]
) -> None:
    given = ("--table", "gold.per_minute", "--from", "1970-01-02", "--to", "1970-01-03")
    assert ask("ledger", *of_lake, "--recompute", *given)[0] == 0
    day = 86_400_000_000
    assert asked["ranges"] == {"per_minute": EventTimeRange(day, 2 * day)}


@pytest.mark.parametrize(
    "option", [("--table", "per_minute"), ("--from", "2 days"), ("--to", "2 days")]
)
def test_what_only_recompute_takes_is_refused_without_it(
    ask: Ask, lake: Lake, of_lake: OfLake, option: tuple[str, str]
) -> None:
    code, _, err = ask("ledger", *of_lake, *option)
    assert code == 2
    assert "only with --recompute" in err


def test_a_range_of_a_table_without_windows_is_refused_by_name(
    ask: Ask, lake: Lake, of_lake: OfLake, asked: dict[str, Any]
) -> None:
    file = lake.pipeline.file
    text = file.read_text().replace("window: {tumbling: 1 minute}", "running: true")
    file.write_text(text.replace("    allowed_lateness: 0 seconds\n", ""))
    code, _, err = ask("ledger", *of_lake, "--recompute", "--from", "2 days")
    assert code == 2
    assert "gold.per_minute has no windows of time" in err
    assert "--recompute --table gold.per_minute" in err
    assert "ranges" not in asked
