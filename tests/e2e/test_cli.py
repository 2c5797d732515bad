"""The command line as a user types it, on a new project, with real processes and a real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

Headgate = Callable[..., "subprocess.CompletedProcess[str]"]
RUN = ("run", "shop", "--once", "--drain", "--json")


def headgate_in(folder: Path) -> Headgate:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headgate.cli", *arguments]
        return subprocess.run(
            command,
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return run


def last_object(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert document["schema"] == 1
    return document


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Headgate:
    """A project of ``headgate init`` that has run once."""
    folder = tmp_path_factory.mktemp("e2e")
    made = headgate_in(folder)("init", "shop")
    assert made.returncode == 0, made.stderr
    headgate = headgate_in(folder / "shop")
    first = headgate(*RUN)
    assert first.returncode == 0, first.stderr
    return headgate


def test_run_once_accounts_for_every_order(shop: Headgate) -> None:
    """Of 60 lines: one sent twice, one cut, one of quantity 0, one that a rule
    rejects, one late (the project's README)."""
    document = last_object(shop("ledger", "shop", "--by-id", "--json"))
    assert document["balanced"] is True
    assert (document["read"], document["duplicate"], document["quarantined"]) == (60, 1, 1)
    silver = document["silver"]["clean_orders"]
    assert (silver["rejected"], silver["filtered"]) == (1, 1)
    gold = document["gold"]["sales_per_hour"]
    assert (gold["folded"], gold["late"], gold["rows"], gold["final"]) == (55, 1, 9, 9)
    assert document["by_id"] == {"rows": 60, "holds": True, "findings": []}


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
        (("init", "."), 1, "not overwritten"),
    ],
)
def test_what_goes_wrong_says_what_to_type(
    shop: Headgate, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = shop(*arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
