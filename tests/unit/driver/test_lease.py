"""Epochs rise even if documents were lost, and a lease survives temporary errors."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from filelock import FileLock

from headgate.driver import lease as module
from headgate.driver.lease import (
    Lease,
    LeaseChange,
    LeaseHeldError,
    Leases,
    TablesInUseError,
    highest_readable_epoch,
    highest_table_epoch,
)
from headgate.lake.control.ownership import LAYERS, lease_path
from headgate.lake.storage.documents import Document, read_document, write_document
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.table import Table
from tests.unit.driver.conftest import Tables

PATIENCE = 20.0  # seconds until an idle thread is reported


def test_an_epoch_is_higher_than_every_tables(tables: Tables) -> None:
    """Lease documents may be lost; a driver with a lower epoch would be refused as a zombie."""
    Table(tables.layout.storage, "gold/two", pipeline="p").fence(41)
    lease = Lease(tables.layout, LAYERS, "p")
    assert lease.take() == 42
    lease.release()
    assert Lease(tables.layout, ("gold",), "p").take() == 43


def test_a_folder_without_a_log_is_no_table(tmp_path: Path) -> None:
    """A driver that is killed while it creates its first table leaves such a folder."""
    layout = Layout.of(str(tmp_path), "p")
    layout.storage.make_folder("bronze/b/_delta_log")
    assert highest_table_epoch(layout, "p") == 0


def test_a_damaged_table_does_not_keep_a_driver_from_its_lease(tables: Tables) -> None:
    """The driver holds the source of the table. A repair or a restore needs all tables."""
    Table(tables.layout.storage, "gold/two", pipeline="p").fence(41)
    damaged = Table(tables.layout.storage, "gold/one", pipeline="p")
    damaged.fence(42)
    damaged.log.remove(entry_path(0))
    assert highest_readable_epoch(tables.layout, "p") == 41
    with pytest.raises(LogGapError):
        highest_table_epoch(tables.layout, "p")


def test_a_frozen_process_in_the_lock_is_told_of(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise even a take-over would wait for it forever, without a message."""
    monkeypatch.setattr("headgate.driver.lease.LOCKED_FOR", 0.1)
    lease = Lease(tables.layout, LAYERS, "p")
    lease.take()
    with FileLock(tables.layout.storage.uri("_headgate/lease.lock")):
        with pytest.raises(LeaseHeldError, match=r"lease\.lock") as refused:
            Lease(tables.layout, LAYERS, "p").take(take_over=True)
        lease.release()
    assert "fuser" in (refused.value.remedy or "")


def test_a_second_driver_is_refused(tables: Tables) -> None:
    lease = Lease(tables.layout, LAYERS, "p")
    lease.take()
    with pytest.raises(LeaseHeldError):
        Lease(tables.layout, ("silver",), "p").take()
    lease.release()


def test_an_operation_that_has_the_tables_is_named(tables: Tables) -> None:
    lease = Lease(tables.layout, LAYERS, "p", "compact")
    lease.take()
    with pytest.raises(TablesInUseError, match="p: its tables are in use by compact, process"):
        Lease(tables.layout, ("silver",), "p").take()
    lease.release()


def test_a_renewal_that_fails_is_tried_again(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_EVERY", 0.01)
    failed, renewed = threading.Event(), threading.Event()

    def write(*arguments: object) -> None:
        if not failed.is_set():
            failed.set()
            raise OSError(28, "No space left on device")
        write_document(*arguments)  # type: ignore[arg-type]
        renewed.set()

    lease = Lease(tables.layout, LAYERS, "p")
    lease.take()
    monkeypatch.setattr("headgate.driver.lease.write_document", write)
    assert renewed.wait(PATIENCE)
    assert failed.is_set()
    assert not lease.is_lost
    lease.release()


def test_a_lease_that_was_taken_over_is_lost(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_EVERY", 0.01)
    older, newer = (Lease(tables.layout, LAYERS, "p") for _ in range(2))
    older.take()
    newer.take(take_over=True)
    assert older._lost.wait(PATIENCE)
    older.release()
    document = read_document(tables.layout.storage, lease_path("gold"))
    assert document is not None
    assert (document["epoch"], document["released"]) == (newer.epoch, False)
    newer.release()


def test_the_error_of_the_work_outranks_that_of_the_release(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk both fail, and only the first says what the work was about."""

    def work() -> None:
        with Lease(tables.layout, LAYERS, "p").held():
            monkeypatch.setattr("headgate.driver.lease.write_document", _on_a_full_disk)
            raise ValueError("the work")

    with pytest.raises(ValueError, match="the work"):
        work()


def test_a_lease_that_cannot_be_released_after_all_is_done_is_an_error(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match="No space"), Lease(tables.layout, LAYERS, "p").held():
        monkeypatch.setattr("headgate.driver.lease.write_document", _on_a_full_disk)


def _on_a_full_disk(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


class MemoryLeases:
    """A store of leases that the engine does not know."""

    def __init__(self) -> None:
        self._held: dict[str, Document | None] = dict.fromkeys(LAYERS)

    def read(self) -> Leases:
        return dict(self._held)

    def update(self, change: LeaseChange) -> None:
        self._held.update(change(self.read()))


def test_another_store_serves_as_well(tables: Tables) -> None:
    store = MemoryLeases()
    lease = Lease(tables.layout, LAYERS, "p", store=store)
    assert lease.take() == 1
    with pytest.raises(LeaseHeldError):
        Lease(tables.layout, ("silver",), "p", store=store).take()
    lease.release()
    assert Lease(tables.layout, ("silver",), "p", store=store).take() == 2
    assert not tables.layout.storage.exists(lease_path("silver"))
