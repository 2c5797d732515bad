"""Savepoints and upgrades as a user types them, over a pipeline that runs in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cli import Headgate, headgate_in, last_object

pytestmark = pytest.mark.e2e


@dataclass
class Shop:
    headgate: Headgate
    file: Path

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new, 1))

    def ask(self, *arguments: str) -> dict[str, Any]:
        done = self.headgate(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return last_object(done)

    def rows(self, sql: str) -> list[list[Any]]:
        rows: list[list[Any]] = self.ask("query", "shop", sql)["rows"]
        return rows

    def await_gold(self) -> None:
        """Until all that landed is in gold: before that, there is nothing to make progress with."""
        until = time.monotonic() + 240
        while self.ask("ledger", "shop")["n"] < 1:
            assert time.monotonic() < until, self.headgate("logs", "shop").stdout
            time.sleep(0.5)

    @property
    def verdicts(self) -> dict[str, str]:
        tables = self.ask("plan", "shop")["deployed"]["tables"]
        return {table: plan["verdict"] for table, plan in tables.items()}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    assert headgate_in(tmp_path)("init", "shop").returncode == 0
    headgate = headgate_in(tmp_path / "shop")
    started = headgate("start", "shop")
    assert started.returncode == 0, started.stderr
    try:
        yield Shop(headgate, tmp_path / "shop/pipelines/shop.yml")
    finally:
        headgate("stop", "shop", "--now")


def test_a_change_is_put_to_work_or_taken_back(shop: Shop) -> None:
    shop.await_gold()
    assert set(shop.verdicts.values()) == {"resume"}
    shop.change("{tumbling: 1 hour}", "{tumbling: 30 minutes}")
    assert shop.verdicts["gold/sales_per_hour"] == "rebuild"
    refused = shop.headgate("restart", "shop")
    assert refused.returncode == 2
    assert "headgate plan" in refused.stderr
    assert shop.ask("status", "shop")["state"] == "running", "it was refused before it was stopped"
    assert shop.headgate("stop", "shop").returncode == 0
    # This starts it, and stops it again.
    done = shop.ask("upgrade", "shop")
    assert done["running"] is False
    assert set(shop.verdicts.values()) == {"resume"}
    assert shop.headgate("start", "shop").returncode == 0
    shop.change("      largest: max(amount)\n", "")
    # The new one dies whenever it is about to give gold a batch.
    failed = shop.headgate("upgrade", "shop", HEADGATE_FAILPOINT="gold.staged")
    assert failed.returncode == 7
    assert (
        f"rolled back to savepoint {shop.ask('savepoint', 'list', 'shop')['savepoints'][0]['id']}"
        in failed.stderr
    )
    status = shop.ask("status", "shop")
    assert status["state"] == "running"
    assert status["reset"]["savepoint"] is not None
    assert shop.rows("SELECT sum(orders), max(largest) IS NULL FROM sales_per_hour") == [
        [56, False]
    ]
    assert shop.verdicts["gold/sales_per_hour"] == "rebuild"
    assert shop.ask("upgrade", "shop")["running"] is True
    assert shop.rows("SELECT sum(orders) FROM sales_per_hour") == [[56]]
    columns = {row[0] for row in shop.rows("DESCRIBE sales_per_hour")}
    assert "largest" not in columns
    ended = shop.ask("stop", "shop", "--savepoint")
    assert ended["savepoint"] == shop.ask("savepoint", "show", "shop")["id"]
    assert shop.ask("savepoint", "verify", "shop", "--read", "--reread")["restorable"] is True
    account = shop.ask("ledger", "shop", "--by-id")
    assert account["balanced"]
    assert account["generation"] == 3
    checkpoint = shop.ask("status", "shop", "--checkpoint")["checkpoint"]
    assert checkpoint["history"][0]["rows"] == 60
    assert sum(window["rows"] for window in checkpoint["windows"]) > 0
