"""Savepoints and upgrades as a user types them, over a pipeline that runs in the background."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.main import answer
from tests.support.drivers import PATIENCE
from tests.support.rounds import in_full
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    # A start leaves a process running that this one has forgotten.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

LARGEST = "      largest: max(amount)\n"
# What an author does first: a field as the producer names it, a column of it, a measure.
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
    """A project whose pipeline runs in the background. The commands themselves run in this
    process: a start of one costs as much as most of them take."""

    file: Path
    capture: pytest.CaptureFixture[str]

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new, 1))

    def type(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code, and what it said."""
        self.capture.readouterr()
        code = answer(arguments)
        said = self.capture.readouterr()
        return code, said.out, said.err

    def ask(self, *arguments: str) -> dict[str, Any]:
        code, out, err = self.type(*arguments, "--json")
        assert code == 0, err
        document: dict[str, Any] = json.loads(out.splitlines()[-1])
        return document

    def rows(self, sql: str) -> list[list[Any]]:
        rows: list[list[Any]] = self.ask("query", "shop", sql)["rows"]
        return rows

    def is_started(self) -> None:
        """Until all that landed is in gold: before that, there is nothing to make progress with."""
        code, _, err = self.type("start", "shop")
        assert code == 0, err
        wait_until(
            lambda: self.ask("ledger", "shop")["n"] >= 1,
            "nothing came to gold",
            PATIENCE,
            every=0.5,
        )

    def is_upgraded(self) -> None:
        """To a declaration without LARGEST, while it runs."""
        assert self.ask("upgrade", "shop")["running"] is True
        assert self.rows("SELECT sum(orders) FROM sales_per_hour") == [[56]]
        assert set(self.verdicts.values()) == {"resume"}
        columns = {row[0] for row in self.rows("DESCRIBE sales_per_hour")}
        assert "largest" not in columns

    @property
    def verdicts(self) -> dict[str, str]:
        tables = self.ask("plan", "shop")["deployed"]["tables"]
        return {table: plan["verdict"] for table, plan in tables.items()}


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Shop]:
    assert answer(["init", str(tmp_path / "shop")]) == 0
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.delenv("HEADGATE_ROOT", raising=False)
    shop = Shop(tmp_path / "shop/pipelines/shop.yml", capsys)
    for line, more in ADDED:
        shop.change(line, line + more)
    Path("landing/orders/2026-05-04T12.json").write_text(json.dumps(GIFT) + "\n")
    try:
        yield shop
    finally:
        answer(["stop", "shop", "--now"])


@in_full
def test_what_did_not_run_is_upgraded_and_stopped_again(shop: Shop) -> None:
    """In short: tests/unit/cli/test_upgrade.py, over jobs that are none."""
    shop.is_started()
    assert shop.type("stop", "shop")[0] == 0
    shop.change("{tumbling: 1 hour}", "{tumbling: 30 minutes}")
    assert shop.ask("upgrade", "shop")["running"] is False
    assert set(shop.verdicts.values()) == {"resume"}


@in_full
def test_a_change_is_put_to_work(shop: Shop) -> None:
    """In short: tests/e2e/cli/test_cli.py, and tests/spark/test_upgrades.py of fields that are
    added."""
    assert "giftNote" in json.dumps(shop.ask("plan", "shop"))
    shop.is_started()
    wait_until(
        lambda: shop.rows(GIFTS) == [["for you", 1]],
        "the field is not in gold",
        PATIENCE,
        every=0.5,
    )
    assert set(shop.verdicts.values()) == {"resume"}
    shop.change(LARGEST, "")
    assert shop.verdicts["gold/sales_per_hour"] == "rebuild"
    code, _, err = shop.type("restart", "shop")
    assert code == 2
    assert "headgate plan" in err
    assert shop.ask("status", "shop")["state"] == "running", "it was refused before it was stopped"
    shop.is_upgraded()
    ended = shop.ask("stop", "shop", "--savepoint")
    assert ended["savepoint"] == shop.ask("savepoint", "show", "shop")["id"]
    assert shop.ask("savepoint", "verify", "shop", "--read", "--reread")["restorable"] is True
    account = shop.ask("ledger", "shop", "--by-id")
    assert account["balanced"]
    assert account["generation"] == 1
    checkpoint = shop.ask("status", "shop", "--checkpoint")["checkpoint"]
    assert checkpoint["history"][0]["rows"] == 61
    assert sum(window["rows"] for window in checkpoint["windows"]) > 0


@in_full
def test_a_change_is_taken_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In short: tests/unit/cli/test_upgrade.py, and tests/spark/test_upgrades.py of its tables."""
    shop.is_started()
    shop.change(LARGEST, "")
    # The new one dies whenever it is about to give gold a batch.
    with monkeypatch.context() as patched:
        patched.setenv("HEADGATE_FAILPOINT", "gold.staged")
        code, _, err = shop.type("upgrade", "shop")
    assert code == 7
    taken = shop.ask("savepoint", "list", "shop")["savepoints"][0]["id"]
    assert f"rolled back to savepoint {taken}" in err
    status = shop.ask("status", "shop")
    assert status["state"] == "running"
    assert status["reset"]["savepoint"] is not None
    assert shop.rows("SELECT sum(orders), max(largest) IS NULL FROM sales_per_hour") == [
        [56, False]
    ]
    assert shop.verdicts["gold/sales_per_hour"] == "rebuild"
    shop.is_upgraded()
    account = shop.ask("ledger", "shop", "--by-id")
    assert account["balanced"]
    assert account["generation"] == 2
