"""A lake that was stored once stays readable, and one of another format is refused by name."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from zipfile import ZipFile

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.history.savepoints.deployment import deployment
from headgate.history.savepoints.store import find
from headgate.history.savepoints.verify import verify
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.insight.querying.sql import select
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.format import FORMAT, FormatError
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.log import read_commit

STORED = Path(__file__).parents[3] / "data"


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Layout, Pipeline]:
    """The project of ``headgate init``, run once with ``--drain``, and a savepoint of it."""
    with ZipFile(STORED / f"lake-of-format-{FORMAT}.zip") as archive:
        archive.extractall(tmp_path)
    declared = load(tmp_path / "pipelines/shop.yml")
    return Layout.of(str(tmp_path / "lake"), declared.name), declared


def test_it_accounts_for_every_record(stored: tuple[Layout, Pipeline]) -> None:
    layout, declared = stored
    account, proof = balance(layout, declared), by_id(layout, declared)
    assert account.balanced
    assert account.read == 60
    assert (proof.findings, proof.rows) == ((), 60)


def test_its_rows_are_what_they_were(stored: tuple[Layout, Pipeline]) -> None:
    layout, declared = stored
    sql = "SELECT sum(orders), sum(revenue), bool_and(final), count(*) FROM sales_per_hour"
    ((orders, revenue, final, rows),) = select(declared, layout, sql)[1]
    assert (orders, revenue, final, rows) == (56, Decimal("2403.79"), True, 9)


def test_its_savepoint_can_be_restored(stored: tuple[Layout, Pipeline]) -> None:
    layout, declared = stored
    assert verify(layout, declared.name, find(layout, "latest"), read=True) == ()


def test_its_declaration_asks_for_no_rebuild(stored: tuple[Layout, Pipeline]) -> None:
    found = deployment(*stored)
    assert (found.action, found.to_rebuild()) == ("resume", ())


@pytest.mark.parametrize(("found", "says"), [(1, "an earlier Headgate"), (9, "a newer Headgate")])
def test_another_format_is_refused_by_name(tmp_path: Path, found: int, says: str) -> None:
    """Format 1 had other keys. The keys of a newer format are unknown, except its number."""
    storage = Storage(str(tmp_path))
    if found == 1:
        storage.write("a.json", b'{"schema": 1, "seal": "00", "epoch": 3}')
        entry = {"commitInfo": {"headgate": {"n": 1}, "headgateSeal": "00"}}
        storage.write("_delta_log/00000000000000000001.json", json.dumps(entry).encode())
        with pytest.raises(FormatError, match=says):
            read_commit(storage, 1)
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("headgate.lake.storage.documents.FORMAT", found)
            write_document(storage, "a.json", {"epoch": 3})
    with pytest.raises(FormatError, match=says):
        read_document(storage, "a.json")
