"""Backfills as a user types them, beside a driver that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_cli import Headgate, headgate_in, last_object
from tests.support.rounds import IN_FULL, in_full

pytestmark = pytest.mark.e2e

TABLE = ("shop", "gold.sales_per_hour", "--from", "2000-01-01", "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("e2e")
    assert headgate_in(folder)("init", "shop").returncode == 0
    return folder / "shop"


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Headgate]:
    """A driver in the background that has read all orders."""
    headgate = headgate_in(folder)
    done = headgate("run", "shop", "--once", "--drain")
    assert done.returncode == 0, done.stderr
    done = headgate("start", "shop")
    assert done.returncode == 0, done.stderr
    yield headgate
    assert headgate("stop", "shop").returncode == 0


def test_a_plan_says_what_would_be_read_and_reads_nothing(running: Headgate, folder: Path) -> None:
    done = last_object(running("backfill", *TABLE, "--dry-run"))
    (table,) = done["tables"]
    assert (done["rows"], table["rows"], done["steps"]) == (60, 9, 1)
    assert table["windows"] == 3
    assert not [*(folder / "lake/shop/_headgate").glob("backfills/*")]


@in_full
def test_what_was_computed_again_is_equal(running: Headgate) -> None:
    done = running("backfill", *TABLE, "--verify")
    assert done.returncode == 0, done.stderr
    (table,) = last_object(done)["tables"]
    assert (table["equal"], table["verdict"], table["live"]) == (9, "equal", table["backfilled"])


def test_a_changed_formula_is_published_by_the_running_driver(
    running: Headgate, folder: Path
) -> None:
    text = (folder / "pipelines/shop.yml").read_text()
    assert "largest: max(amount)" in text
    changed = folder / "pipelines/changed.yml"
    changed.write_text(text.replace("largest: max(amount)", "largest: min(amount)"))
    changed_by = ("--declaration", str(changed))
    done = running("backfill", *TABLE, *changed_by, "--publish", "--note", "a mistake")
    assert done.returncode == 0, done.stderr
    assert "the running driver takes it in" in done.stderr
    document = last_object(done)
    assert document["published"]["void"] == []
    assert {each["column"] for each in document["tables"][0]["columns"]} == {"largest"}
    sql = "SELECT count(*), count(*) FILTER (revision = 1) FROM sales_per_hour"
    count = document["tables"][0]["changed"]
    assert last_object(running("query", "shop", sql, "--json"))["rows"] == [[9, count]]
    assert last_object(running("ledger", "shop", "--by-id", "--json"))["by_id"]["holds"] is True
    found = last_object(running("savepoint", "list", "shop", "--json"))["savepoints"]
    assert document["published"]["savepoint"] in {each["id"] for each in found}
    (newest, *_) = last_object(running("backfill", "shop", "--json"))["backfills"]
    assert newest == {key: value for key, value in document.items() if key != "schema"}
    if IN_FULL:
        verified = running("backfill", *TABLE, "--verify")
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
def test_what_cannot_be_done_is_refused(
    running: Headgate, folder: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    text = (folder / "pipelines/shop.yml").read_text()
    (folder / "pipelines/wider.yml").write_text(text.replace("tumbling: 1 h", "tumbling: 2 h"))
    done = running("backfill", "shop", *arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
