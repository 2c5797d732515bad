"""plan, init, list, status, ledger and query, as a user types them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli.inspect.status_screen import freshness_in_words
from headgate.insight.status.freshness import (
    Freshness,
    InputFreshness,
    SourceFreshness,
    StepFreshness,
)
from headgate.lake.control.driver_reports import Failure, record_failure
from headgate.lake.control.ownership import Owner
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake, fill, silver
from tests.unit.supervision.conftest import NOW, lease, report

OfLake = tuple[str, str, str]


def test_plan_of_a_wrong_declaration_names_file_and_line(ask: Ask) -> None:
    Path("bad.yml").write_text("pipeline: bad\nsorces: {}\n")
    code, _, err = ask("plan", "bad")
    assert code == 2
    assert "bad.yml:2: sorces" in err


def test_init_then_list_and_plan(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = ask("init", "shop")
    assert code == 0
    assert "headgate run pipelines/shop.yml --once --drain" in out
    monkeypatch.chdir("shop")
    Path("pipelines/broken.yml").write_text("pipeline: 7\n")
    listed = {p["name"]: p for p in last_object(ask("list", "--json")[1])["pipelines"]}
    assert (listed["shop"]["state"], listed["shop"]["has_run"]) == ("stopped", False)
    assert "never run" in ask("list")[1]
    assert listed["broken"]["state"] == "invalid"
    assert "auctions" in listed
    assert last_object(ask("plan", "shop", "--json")[1])["pipeline"] == "shop"
    assert ask("init", ".")[0] == 2


def test_status_of_what_never_ran(ask: Ask, of_lake: OfLake) -> None:
    code, out, _ = ask("status", *of_lake)
    assert code == 0
    assert out.startswith("it has never run")
    document = last_object(ask("status", *of_lake, "--json")[1])
    assert document == {
        "schema": 1,
        "pipeline": "tiny",
        "state": "stopped",
        "ended": None,
        "failure": None,
        "paused": None,
        "jobs": [],
        "elsewhere": [],
        "freshness": {
            "gold_changed": None,
            "watermark": None,
            "last_record": None,
            "gold": {"per_minute": None},
            "steps": {},
        },
        "rebuilding": [],
        "held": [],
        "dead_letters": {},
        "set_aside": {},
        "open_loads": [],
        "stopped_loads": [],
        "reset": None,
    }


def test_a_pipeline_without_gold_has_no_time_of_gold() -> None:
    fresh = Freshness({}, {"events": SourceFreshness(NOW, NOW)})
    found = freshness_in_words(fresh, NOW + timedelta(minutes=2))
    assert found == "watermark 2 min behind; last record 2 min ago"


def test_tables_with_steps_have_lines_of_their_own() -> None:
    steps = {
        "sales": StepFreshness(timedelta(seconds=30), NOW),
        "visits": StepFreshness("auto", None),
    }
    fresh = Freshness({"sales": NOW}, {"events": SourceFreshness()}, steps)
    assert freshness_in_words(fresh, NOW + timedelta(seconds=41)).splitlines()[1:] == [
        "sales: step every 30 seconds, results up to 41 s old",
        "visits: step auto, results up to date",
    ]


def test_tables_that_wait_for_one_of_several_sources_have_lines_of_their_own() -> None:
    sources = {"web": SourceFreshness(NOW, NOW), "till": SourceFreshness(NOW, NOW)}
    inputs = (
        InputFreshness(("bought", "seen"), NOW, "till", timedelta(minutes=25), ()),
        InputFreshness(("other",), None, "till", None, ()),
        InputFreshness(("more",), NOW, "web", timedelta(0), ("till",)),
    )
    fresh = Freshness({"sales": NOW}, sources, inputs=inputs)
    assert freshness_in_words(fresh, NOW + timedelta(minutes=12)).splitlines()[1:] == [
        "bought, seen: results wait for till, 25 min behind in event time, last record 12 min ago",
        "other: nothing is final before till has delivered",
        "more: results do not wait for till, which is idle",
    ]
    said = fresh.document(NOW)["inputs"][0]
    assert (said["held_by"], said["behind_seconds"], said["idle"]) == ("till", 1500, [])


def test_status_says_how_fresh_gold_is(ask: Ask, empty_lake: Lake, of_lake: OfLake) -> None:
    """The last commit with changes counts, not the later fences of drivers."""
    lease(empty_lake.layout, Owner.here(), released=True)
    layers = {"bronze/events": 5, "gold/per_minute": 4}
    for path, hours in layers.items():
        table = Table(empty_lake.layout.storage, path, pipeline="tiny")
        at = datetime.now(UTC) - timedelta(hours=hours)
        clock = commit_time(at - timedelta(days=2))
        payload = BronzePayload(watermark=clock) if hours == 5 else GoldPayload(clock)
        state = table.refresh().advanced_to(1, at, payload)
        table.commit(state.counting({}, changed=True))
        table.fence(2)
    out = ask("status", *of_lake)[1]
    assert "gold changed 4 h ago; watermark 2 d behind; last record 5 h ago\n" in out
    document = last_object(ask("status", *of_lake, "--json")[1])["freshness"]
    assert document["gold"]["per_minute"] == document["gold_changed"]
    assert 14_400 <= document["gold_changed"]["seconds"] < 14_460
    entry = "gold/per_minute/_delta_log/00000000000000000002.json"
    empty_lake.layout.storage.write(entry, b"{")
    code, out, _ = ask("status", *of_lake)
    assert (code, "stopped" in out) == (0, True)
    assert "how fresh gold is cannot be read" in out


def test_a_failure_is_shown_with_the_next_command(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    """``status`` exits with 3 if a person is needed, and with 7 if a supervisor may restart."""
    for failed, code in ((3, 3), (70, 7)):
        why = Failure(failed, "a file is gone", "headgate files skip tiny 3", NOW)
        record_failure(lake.layout, why)
        said = ask("status", *of_lake)
        assert said[0] == code
        assert f"exit code {failed}: a file is gone\nheadgate files skip tiny 3\n" in said[1]
    document = last_object(ask("status", *of_lake, "--json")[1])
    assert (document["ended"], document["failure"]["code"]) == ("failed", 70)


def test_list_distinguishes_a_finished_run_from_a_failed_one(
    ask: Ask, lake: Lake, of_lake: OfLake
) -> None:
    _, root_option, root = of_lake
    lease(lake.layout, Owner(1, "here", 0.0), released=True)
    report(lake.layout, "fused", epoch=1, n=2, state="finished")
    assert "finished" in ask("list", root_option, root)[1]
    record_failure(lake.layout, Failure(3, "a file is gone", "skip it", NOW))
    listed = ask("list", root_option, root)[1]
    assert "failed" in listed
    assert "a file is gone" in listed


def test_ledger_that_balances(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    code, out, _ = ask("ledger", *of_lake)
    assert code == 0
    assert "every event is accounted for" in out
    assert "corrected" not in out
    counts = {"silver": 1, "filtered": 0, "quarantined": 0, "duplicate": 0}
    lake.commit("silver/good", 2, [silver(6)], counts)
    assert "quarantined 1, of these 1 corrected later" in ask("ledger", *of_lake)[1]
    code, out, _ = ask("ledger", *of_lake, "--by-id", "--json")
    document = last_object(out)
    assert code == 0
    assert document["balanced"] is document["by_id"]["holds"] is True


def test_a_ledger_that_does_not_balance_names_the_next_command(
    ask: Ask, lake: Lake, of_lake: OfLake
) -> None:
    lake.commit("silver/good", 2, [], {"silver": 5})
    code, out, _ = ask("ledger", *of_lake)
    assert code == 1
    assert re.search(r"see which rows differ: .*headgate.* ledger .* --by-id", out)


@pytest.mark.slow
def test_ledger_that_does_not_is_1_with_the_missing_ids(
    ask: Ask, empty_lake: Lake, of_lake: OfLake
) -> None:
    fill(empty_lake, silver_rows=(3, 5, 5))  # the counts agree; only the ids show it
    assert ask("ledger", *of_lake)[0] == 0
    code, out, _ = ask("ledger", *of_lake, "--by-id")
    assert code == 1
    assert "e4" in out
    document = last_object(ask("ledger", *of_lake, "--by-id", "--json")[1])
    assert document["balanced"] is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("events", 7),
        ("bronze.events", 7),
        ("good", 3),
        ("silver.good", 3),
        ("per_minute", 1),
        ("gold.per_minute", 1),
        ("late.per_minute", 1),
        ("quarantine", 1),
        ("quarantine.events", 1),
        ("files", 0),
    ],
)
def test_query_by_name(ask: Ask, lake: Lake, of_lake: OfLake, table: str, rows: int) -> None:
    pipeline, *root = of_lake
    code, out, _ = ask("query", pipeline, f"SELECT count(*) AS n FROM {table}", *root, "--json")
    assert code == 0
    document = last_object(out)
    assert (document["columns"], document["rows"]) == (["n"], [[rows]])


def test_query_finds_rows_by_a_column_without_bounds(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    sql = "SELECT event_id FROM events WHERE reason = 'wrong_type'"
    assert last_object(ask("query", pipeline, sql, *root, "--json")[1])["rows"] == [["e1"]]


def test_query_shows_times_in_utc(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    out = ask("query", pipeline, "SELECT window_start, events FROM per_minute", *root)[1]
    assert "2026-05-04 12:00:00Z" in out
    assert "1 row\n" in out


def test_a_wrong_query_lists_the_tables(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    code, _, err = ask("query", pipeline, "SELECT * FROM nothing", *root)
    assert code == 2
    assert "silver.good" in err


def test_query_before_the_first_run(ask: Ask, of_lake: OfLake) -> None:
    code, _, err = ask("query", of_lake[0], "SELECT * FROM good", "--root", "nowhere")
    assert code == 1
    assert "headgate run" in err


def test_logs_before_the_first_start(ask: Ask, of_lake: OfLake) -> None:
    code, _, err = ask("logs", *of_lake)
    assert code == 1
    assert "headgate start" in err


def test_logs_of_a_start(ask: Ask, empty_lake: Lake, of_lake: OfLake) -> None:
    empty_lake.layout.storage.write("_headgate/logs/run.log", b"one\ntwo\n")
    assert ask("logs", *of_lake, "-n", "1")[1] == "two\n"


def test_a_directory_is_no_declaration(ask: Ask) -> None:
    Path("a.yml").mkdir()
    assert "a.yml: is a folder" in ask("plan", "a.yml")[2]
    assert "is a folder" in ask("plan", ".")[2]
