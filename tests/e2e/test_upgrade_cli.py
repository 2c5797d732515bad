"""Savepoints and upgrades as a user types them, over a pipeline that runs in the background."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers import PATIENCE
from tests.support.rounds import in_full
from tests.support.said import SaidHere
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    # A start leaves a child process running to which this process has no reference.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

LARGEST = "      largest: max(amount)\n"
# The first changes of an author: a field with the producer's name, a column and a measure of it.
ADDED = (
    ("        ordered_at: timestamp\n", "        giftNote: string\n"),
    ("      amount: price * quantity\n", "      giftNote: lower(giftNote)\n"),
    ("      orders: count(*)\n", "      gifts: count(giftNote)\n"),
)
GIFT = {"order_id": "gift", "channel": "Web", "quantity": 1, "price": 9.5, "giftNote": "For You"}
GIFT |= {"ordered_at": "2026-05-04T11:59:30Z"}
GIFTS = "SELECT giftNote, gifts FROM clean_orders, sales_per_hour WHERE giftNote > '' AND gifts > 0"


@dataclass
class Shop:
    """A project whose pipeline runs in the background."""

    file: Path
    headgate: SaidHere

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new, 1))

    def rows(self, sql: str) -> list[list[Any]]:
        rows: list[list[Any]] = self.headgate.json("query", "shop", sql)["rows"]
        return rows

    def is_started(self) -> None:
        """Start it, and wait until all landed files are in gold: an upgrade needs a batch to make
        progress with."""
        started = self.headgate("start", "shop")
        assert started.returncode == 0, started.stderr
        wait_until(
            lambda: self.headgate.json("ledger", "shop")["n"] >= 1,
            "nothing came to gold",
            PATIENCE,
            every=0.5,
        )

    def is_upgraded(self) -> None:
        """Upgrade it to a declaration without LARGEST, while it runs."""
        assert self.headgate.json("upgrade", "shop")["running"] is True
        assert self.rows("SELECT sum(orders) FROM sales_per_hour") == [[56]]
        assert set(self.actions.values()) == {"resume"}
        columns = {row[0] for row in self.rows("DESCRIBE sales_per_hour")}
        assert "largest" not in columns

    @property
    def actions(self) -> dict[str, str]:
        tables = self.headgate.json("plan", "shop")["deployed"]["tables"]
        return {table: plan["action"] for table, plan in tables.items()}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    folder = tmp_path / "shop"
    assert SaidHere(tmp_path)("init", "shop").returncode == 0
    monkeypatch.delenv("HEADGATE_ROOT", raising=False)
    shop = Shop(folder / "pipelines/shop.yml", SaidHere(folder))
    for line, more in ADDED:
        shop.change(line, line + more)
    (folder / "landing/orders/2026-05-04T12.json").write_text(json.dumps(GIFT) + "\n")
    try:
        yield shop
    finally:
        shop.headgate("stop", "shop", "--now")


@in_full
def test_what_did_not_run_is_upgraded_and_stopped_again(shop: Shop) -> None:
    """A short run tests this in tests/unit/cli/test_upgrade.py, with fake jobs."""
    shop.is_started()
    assert shop.headgate("stop", "shop").returncode == 0
    shop.change("{tumbling: 1 hour}", "{tumbling: 30 minutes}")
    assert shop.headgate.json("upgrade", "shop")["running"] is False
    assert set(shop.actions.values()) == {"resume"}


@in_full
def test_a_change_is_put_to_work(shop: Shop) -> None:
    """A short run tests this in tests/e2e/cli/test_cli.py, and added fields in
    tests/spark/test_upgrades.py."""
    assert "giftNote" in json.dumps(shop.headgate.json("plan", "shop"))
    shop.is_started()
    wait_until(
        lambda: shop.rows(GIFTS) == [["for you", 1]],
        "the field is not in gold",
        PATIENCE,
        every=0.5,
    )
    assert set(shop.actions.values()) == {"resume"}
    shop.change(LARGEST, "")
    assert shop.actions["gold/sales_per_hour"] == "rebuild"
    refused = shop.headgate("restart", "shop")
    assert refused.returncode == 2
    assert "headgate plan" in refused.stderr
    assert shop.headgate.json("status", "shop")["state"] == "running", (
        "it was refused before it was stopped"
    )
    shop.is_upgraded()
    ended = shop.headgate.json("stop", "shop", "--savepoint")
    assert ended["savepoint"] == shop.headgate.json("savepoint", "show", "shop")["id"]
    assert (
        shop.headgate.json("savepoint", "verify", "shop", "--read", "--reread")["restorable"]
        is True
    )
    account = shop.headgate.json("ledger", "shop", "--by-id")
    assert account["balanced"]
    assert account["generation"] == 1
    checkpoint = shop.headgate.json("status", "shop", "--checkpoint")["checkpoint"]
    assert checkpoint["history"][0]["rows"] == 61
    assert sum(window["rows"] for window in checkpoint["windows"]) > 0


@in_full
def test_a_change_is_taken_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short run tests this in tests/unit/cli/test_upgrade.py, and the tables in
    tests/spark/test_upgrades.py."""
    shop.is_started()
    shop.change(LARGEST, "")
    # The new driver dies each time before it commits a batch to gold.
    with monkeypatch.context() as patched:
        patched.setenv("HEADGATE_FAILPOINT", "gold.staged")
        failed = shop.headgate("upgrade", "shop")
    assert failed.returncode == 7
    taken = shop.headgate.json("savepoint", "list", "shop")["savepoints"][0]["id"]
    assert f"rolled back to savepoint {taken}" in failed.stderr
    status = shop.headgate.json("status", "shop")
    assert status["state"] == "running"
    assert status["reset"]["savepoint"] is not None
    assert shop.rows("SELECT sum(orders), max(largest) IS NULL FROM sales_per_hour") == [
        [56, False]
    ]
    assert shop.actions["gold/sales_per_hour"] == "rebuild"
    shop.is_upgraded()
    account = shop.headgate.json("ledger", "shop", "--by-id")
    assert account["balanced"]
    assert account["generation"] == 2
