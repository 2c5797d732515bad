"""The guard on a full disk: what runs goes on, and what died is started again later."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from headgate.machine.process_tree import guard, presence
from headgate.machine.process_tree.guard import Child, Guard, Order
from headgate.machine.process_tree.presence import Presence
from tests.support.waiting import wait_until

PATIENCE = 20.0  # seconds
WAITING = (sys.executable, "-c", "import time; time.sleep(60)")


class Disk:
    """The disk of the document. ``refused`` counts the writes that failed, ``named`` are the
    children of the last one that did not."""

    def __init__(self) -> None:
        self.is_full, self.refused = False, 0
        self.named: set[str] = set()

    def announce(self, folder: Path, what: Presence) -> None:
        if self.is_full:
            self.refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        presence.write(folder / "running.json", "{}")
        self.named = set(what.children)


@contextmanager
def serving(runs: Guard) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=runs.serve)
    thread.start()
    try:
        yield thread
    finally:
        runs.end()
        thread.join(PATIENCE)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(guard, "AGAIN_AFTER", 0.1)
    monkeypatch.setattr(guard, "_POLL", 0.02)
    monkeypatch.setattr(presence, "announce", made.announce)
    return made


@pytest.fixture
def runs(tmp_path: Path) -> Guard:
    (tmp_path / "logs").mkdir()
    children = {"one": Child(WAITING), "other": Child(WAITING)}
    environment = dict(os.environ)
    return Guard(Order(str(tmp_path), str(tmp_path), environment, children, {}, (0.5, 0.5)))


def pids(runs: Guard) -> dict[str, int]:
    return {name: process.pid for name, process in runs.running.items()}


@pytest.mark.slow
def test_a_child_that_dies_on_a_full_disk_ends_no_other(runs: Guard, disk: Disk) -> None:
    with serving(runs) as thread:
        wait_until(lambda: len(disk.named) == 2, "nothing runs", PATIENCE)
        before = pids(runs)
        disk.is_full = True
        psutil.Process(before["one"]).kill()
        wait_until(lambda: disk.refused > 2, "it does not try again", PATIENCE)
        assert thread.is_alive()
        after = pids(runs)
        assert after["one"] != before["one"], "it runs, although the document does not name it"
        assert after["other"] == before["other"]
        document = runs.folder / "running.json"
        document.unlink()
        disk.is_full = False
        wait_until(document.exists, "it is not announced", PATIENCE)
        assert pids(runs) == after


@pytest.mark.slow
def test_a_log_that_cannot_be_opened_is_tried_again(runs: Guard, disk: Disk) -> None:
    log = runs.order.log_folder
    with serving(runs) as thread:
        wait_until(lambda: len(disk.named) == 2, "nothing runs", PATIENCE)
        before = pids(runs)
        log.rename(log.with_name("away"))
        psutil.Process(before["one"]).kill()
        wait_until(lambda: runs.running["one"].returncode is not None, "it lives", PATIENCE)
        thread.join(0.5)
        assert thread.is_alive()
        log.with_name("away").rename(log)
        wait_until(lambda: pids(runs)["one"] != before["one"], "it is not started", PATIENCE)
        assert pids(runs)["other"] == before["other"]


@pytest.mark.slow
def test_a_tree_that_cannot_begin_ends(runs: Guard, disk: Disk) -> None:
    disk.is_full = True
    with pytest.raises(OSError, match="No space left"):
        runs.serve()
    assert all(process.poll() is not None for process in runs.running.values())
