"""The command line as a user types it, with real processes and a real Spark: what can be done with
the README's first pipeline once it has run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli.conftest import Headgate
from tests.support.rounds import IN_FULL, in_full

pytestmark = [
    pytest.mark.e2e,
    # A start leaves a child process running to which this process has no reference.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

RUN = ("run", "shop", "--once", "--drain", "--json")
BACKFILL = ("shop", "gold.sales_per_hour", "--from", "2000-01-01", "--json")


def last_object(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert document["schema"] == 1
    return document


def test_run_once_accounts_for_every_order(shop: Headgate) -> None:
    """Of 60 lines, one is sent twice, one is cut, one has the quantity 0, a rule rejects one, and
    one is late (the project's README)."""
    document = last_object(shop("ledger", "shop", "--by-id", "--json"))
    assert document["balanced"] is True
    assert (document["read"], document["duplicate"], document["quarantined"]) == (60, 1, 1)
    silver = document["silver"]["clean_orders"]
    assert (silver["rejected"], silver["filtered"]) == (1, 1)
    gold = document["gold"]["sales_per_hour"]
    assert (gold["folded"], gold["late"], gold["rows"], gold["final"]) == (55, 1, 9, 9)
    assert document["by_id"] == {"rows": 60, "holds": True, "findings": []}


def test_gold_is_compared_with_its_definition(shop: Headgate) -> None:
    done = shop("ledger", "shop", "--recompute", "--json")
    assert done.returncode == 0
    document = last_object(done)
    assert document["balanced"] is True
    (table,) = document["recomputed"]["tables"]
    counts = (table["equal"], table["changed"], table["missing"], table["extra"])
    assert counts == (document["gold"]["sales_per_hour"]["rows"], 0, 0, 0)


def test_a_second_run_reads_nothing_twice_and_says_only_its_own_words(shop: Headgate) -> None:
    done = shop(*RUN)
    assert done.returncode == 0
    document = last_object(done)
    assert len(done.stdout.splitlines()) == 1
    assert "WARN" not in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("… ")]
    assert told[0] == "… checking the declaration"
    assert told.index("… starting Spark") < told.index("… opening tables")
    assert "… looking for input" in told
    assert document.pop("seconds") > 0
    assert document == {
        "schema": 1,
        "pipeline": "shop",
        "read": 60,
        "duplicate": 1,
        "quarantined": 1,
        "rejected": 1,
        "silver": {"clean_orders": 56},
        "filtered": 1,
        "gold": {"sales_per_hour": {"rows": 9, "folded": 55, "late": 1}},
        "balanced": True,
        "batches": 0,
        "left": None,
    }


def test_query_by_bare_name_with_a_filter(shop: Headgate) -> None:
    sql = "SELECT sum(orders) AS orders FROM sales_per_hour WHERE channel = 'web' AND final"
    assert last_object(shop("query", "shop", sql, "--json"))["rows"] == [[25]]
    late = "SELECT order_id, reason FROM late.sales_per_hour"
    assert [row[1] for row in last_object(shop("query", "shop", late, "--json"))["rows"]] == [
        "late"
    ]
    rejected = "SELECT event_id, rules[1].id FROM rejected.clean_orders"
    assert last_object(shop("query", "shop", rejected, "--json"))["rows"] == [
        ["o-0006", "amount_is_plausible"]
    ]


def test_a_suite_is_proposed_and_broken_rules_are_counted(shop: Headgate) -> None:
    proposed = shop("expectations", "profile", "shop", "silver.clean_orders")
    assert proposed.stdout.count("  - id: ") == 16
    assert "value_set: [app, store, web]" in proposed.stdout
    (suite,) = last_object(shop("expectations", "list", "shop", "--json"))["suites"]
    broken = {rule["id"]: rule["broken"] for rule in suite["rules"]}
    assert broken == {"channel_is_known": 0, "amount_is_plausible": 1, "few_pieces": 3}


def test_status_list_and_files(shop: Headgate) -> None:
    status = last_object(shop("status", "shop", "--json"))
    assert status["state"] == "stopped"
    assert [(job["job"], job["n"]) for job in status["jobs"]] == [("fused", 1)]
    listed = last_object(shop("list", "--json"))["pipelines"]
    assert {p["name"]: p["state"] for p in listed}["shop"] == "stopped"
    files = last_object(shop("files", "list", "shop", "--json"))["files"]
    assert [(f["sequence"], f["status"]) for f in files] == [(1, "read"), (2, "read"), (3, "read")]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("run", "shop", "--onec"), 2, "--once"),
        (("run", "shp"), 2, 'did you mean "shop"'),
        (("query", "shop", "SELECT nothing FROM sales_per_hour"), 2, "nothing"),
        (("ledger", "shop", "--root", "elsewhere"), 1, "headgate run"),
        (("files", "skip", "shop", "1"), 1, "has been read already"),
        (("files", "skip", "shop", "99"), 1, "headgate files list"),
        (("logs", "shop"), 1, "headgate start"),
        (("init", "."), 2, "not overwritten"),
    ],
)
def test_what_goes_wrong_says_what_to_type(
    shop: Headgate, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = shop(*arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def running(shop: Headgate) -> Iterator[Headgate]:
    """The project, whose driver runs in the background."""
    done = shop("start", "shop")
    assert done.returncode == 0, done.stderr
    yield shop
    assert shop("stop", "shop").returncode == 0


def test_a_backfill_says_what_it_would_read_and_reads_nothing(
    running: Headgate, folder: Path
) -> None:
    done = last_object(running("backfill", *BACKFILL, "--dry-run"))
    (table,) = done["tables"]
    assert (done["rows"], table["rows"], done["steps"]) == (60, 9, 1)
    assert table["windows"] == 3
    assert not [*(folder / "lake/shop/_headgate").glob("backfills/*")]


def test_a_late_row_is_folded_when_a_person_asks(running: Headgate) -> None:
    """It changes gold, so the tests of a run's results come before it."""
    (before,) = last_object(running("late", "list", "shop", "--json"))["late"]
    assert (before["waiting"], before["replayed"]) == (1, 0)
    table = ("shop", "gold.sales_per_hour")
    (row,) = last_object(running("late", "show", *table, "--key", "channel=app", "--json"))["rows"]
    assert (row["order_id"], row["replayed"]) == ("o-0049", "null")
    replayed = running("late", "replay", *table, "--note", "offline", "--json")
    assert "the running driver does it between two batches" in replayed.stderr
    assert last_object(replayed)["pairs"] == 1
    ledger = last_object(running("ledger", "shop", "--by-id", "--json"))
    gold = ledger["gold"]["sales_per_hour"]
    assert (gold["folded"], gold["late"], gold["replayed"]) == (56, 0, 1)
    assert ledger["by_id"]["holds"] is True
    sql = "SELECT channel, orders FROM sales_per_hour WHERE revision = 1"
    assert last_object(running("query", "shop", sql, "--json"))["rows"] == [["app", 6]]


@in_full
def test_what_a_backfill_computes_again_is_equal(running: Headgate) -> None:
    done = running("backfill", *BACKFILL, "--verify")
    assert done.returncode == 0, done.stderr
    (table,) = last_object(done)["tables"]
    assert (table["equal"], table["result"], table["live"]) == (9, "equal", table["backfilled"])


def test_a_backfill_is_published_by_the_running_driver(running: Headgate, folder: Path) -> None:
    text = (folder / "pipelines/shop.yml").read_text()
    assert "largest: max(amount)" in text
    changed = folder / "pipelines/changed.yml"
    changed.write_text(text.replace("largest: max(amount)", "largest: min(amount)"))
    changed_by = ("--declaration", str(changed))
    sql = "SELECT count(*), sum(revision) FROM sales_per_hour"
    ((_, earlier),) = last_object(running("query", "shop", sql, "--json"))["rows"]
    done = running("backfill", *BACKFILL, *changed_by, "--publish", "--note", "a mistake")
    assert done.returncode == 0, done.stderr
    assert "the running driver does it between two batches" in done.stderr
    document = last_object(done)
    assert document["published"]["void"] == []
    assert {each["column"] for each in document["tables"][0]["columns"]} == {"largest"}
    revisions = earlier + document["tables"][0]["changed"]
    assert last_object(running("query", "shop", sql, "--json"))["rows"] == [[9, revisions]]
    assert last_object(running("ledger", "shop", "--by-id", "--json"))["by_id"]["holds"] is True
    found = last_object(running("savepoint", "list", "shop", "--json"))["savepoints"]
    assert document["published"]["savepoint"] in {each["id"] for each in found}
    (newest, *_) = last_object(running("backfill", "shop", "--json"))["backfills"]
    assert newest == {key: value for key, value in document.items() if key != "schema"}
    if IN_FULL:
        verified = running("backfill", *BACKFILL, "--verify")
        assert verified.returncode == 11
        assert last_object(verified)["tables"][0]["earlier"] == [document["id"]]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--verify",), 2, "--from"),
        (("gold.sales", "--from", "2 days"), 2, "there are: gold.sales_per_hour"),
        (("--from", "2026-01-02", "--to", "2026-01-01"), 2, "not after --from"),
        (("--from", "2 days", "--verify", "--publish"), 2, "only one of"),
        (("--from", "2 days", "--declaration", "pipelines/wider.yml"), 2, "headgate upgrade"),
    ],
)
def test_a_backfill_that_cannot_be_done_is_refused(
    running: Headgate, folder: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    text = (folder / "pipelines/shop.yml").read_text()
    (folder / "pipelines/wider.yml").write_text(text.replace("tumbling: 1 h", "tumbling: 2 h"))
    done = running("backfill", "shop", *arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_history_is_loaded_beside_a_running_stream(running: Headgate, folder: Path) -> None:
    sent = (folder / "landing/orders/2026-05-04T10.json").read_text()
    orders = [json.loads(line) for line in sent.splitlines()]
    archive = folder / "archive" / "2025"
    archive.mkdir(parents=True)
    for month in ("01", "02"):
        lines = (
            json.dumps(
                {**o, "order_id": f"h-{month}-{i}", "ordered_at": f"2025-{month}-03T10:00:00Z"}
            )
            for i, o in enumerate(orders)
        )
        (archive / f"{month}.json").write_text("\n".join(lines))
    before = last_object(running("ledger", "shop", "--json"))["gold"]["sales_per_hour"]["late"]
    done = running("load", "shop", "--files", "archive/**", "--json")
    assert done.returncode == 0, done.stderr
    state = last_object(done)
    assert (state["state"], state["rows"]) == ("done", 2 * len(orders))
    assert last_object(running("load", "shop", "--json"))["loads"][0]["state"] == "done"
    ledger = last_object(running("ledger", "shop", "--by-id", "--json"))
    assert ledger["by_id"]["holds"] is True
    assert ledger["gold"]["sales_per_hour"]["late"] == before, "late rows of the load are folded"
    sql = "SELECT sum(orders) FROM sales_per_hour WHERE window_start < '2026-01-01' AND final"
    valid = sum(order["quantity"] > 0 for order in orders)
    assert last_object(running("query", "shop", sql, "--json"))["rows"] == [[2 * valid]]
    refused = running("load", "shop", "--resume")
    assert refused.returncode == 2
    assert "no load is open" in refused.stderr


def test_a_change_is_put_to_work(running: Headgate, folder: Path) -> None:
    """What was folded, published and loaded before is kept. The tables lose a column, so the tests
    of their columns come before."""
    file = folder / "pipelines/shop.yml"
    text = file.read_text()
    assert "      largest: max(amount)\n" in text
    sql = "SELECT sum(orders), sum(revenue) FROM sales_per_hour"
    before = last_object(running("query", "shop", sql, "--json"))["rows"]
    file.write_text(text.replace("      largest: max(amount)\n", ""))
    assert actions(running)["gold/sales_per_hour"] == "rebuild"
    refused = running("restart", "shop")
    assert refused.returncode == 2
    assert "headgate plan" in refused.stderr
    status = last_object(running("status", "shop", "--json"))
    assert status["state"] == "running", "it was refused before it was stopped"
    upgraded = running("upgrade", "shop", "--json")
    assert upgraded.returncode == 0, upgraded.stderr
    assert last_object(upgraded)["running"] is True
    assert set(actions(running).values()) == {"resume"}
    columns = last_object(running("query", "shop", "DESCRIBE sales_per_hour", "--json"))["rows"]
    assert "largest" not in {row[0] for row in columns}
    assert last_object(running("query", "shop", sql, "--json"))["rows"] == before
    ended = last_object(running("stop", "shop", "--savepoint", "--json"))
    taken = last_object(running("savepoint", "show", "shop", "--json"))
    assert ended["savepoint"] == taken["id"]
    verified = last_object(running("savepoint", "verify", "shop", "--read", "--reread", "--json"))
    assert verified["restorable"] is True
    ledger = last_object(running("ledger", "shop", "--by-id", "--json"))
    assert (ledger["by_id"]["holds"], ledger["generation"]) == (True, 1)


def actions(shop: Headgate) -> dict[str, str]:
    tables = last_object(shop("plan", "shop", "--json"))["deployed"]["tables"]
    return {table: plan["action"] for table, plan in tables.items()}
