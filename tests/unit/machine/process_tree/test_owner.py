"""The owner of a tree whose guard is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headgate.machine.process_tree import owner, presence
from headgate.machine.process_tree.guard import Child, Order
from headgate.machine.process_tree.owner import ProcessTree
from tests.support.waiting import wait_until

PATIENCE = 20.0  # seconds
WAITING = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[ProcessTree]:
    order = Order(
        folder=str(tmp_path),
        work=str(tmp_path),
        environment=dict(os.environ),
        children={"child": Child(WAITING)},
        tell={},
        graces=(0.5, 0.5),
    )

    def is_up() -> bool:
        found = presence.read(tmp_path)
        return found is not None and "child" in found.children

    made = owner.start(order, is_up, lambda code: AssertionError(f"it ended with {code}"), PATIENCE)
    child = child_of(tmp_path)
    yield made
    for process in (psutil.Process(made.pid) if made.code is None else None, child):
        if process is not None and process.is_running():
            process.kill()


def child_of(folder: Path) -> psutil.Process:
    found = presence.read(folder)
    assert found is not None
    return psutil.Process(found.children["child"])


def has_ended(process: psutil.Process) -> bool:
    """The child of a killed guard may stay as a zombie, if no process reaps it."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def kill_the_guard(tree: ProcessTree) -> None:
    os.kill(tree.pid, signal.SIGKILL)
    wait_until(lambda: tree.code is not None, "the guard does not end", PATIENCE)
    assert tree.code == -signal.SIGKILL


@pytest.mark.slow
def test_what_a_killed_guard_left_has_ended_when_its_owner_ends_it(
    tmp_path: Path, tree: ProcessTree
) -> None:
    child = child_of(tmp_path)
    kill_the_guard(tree)
    assert not has_ended(child)
    tree.end()
    assert has_ended(child)
    assert presence.read(tmp_path) is None
    tree.end()


@pytest.mark.slow
def test_what_another_guard_has_taken_over_is_left_to_it(tmp_path: Path, tree: ProcessTree) -> None:
    child = child_of(tmp_path)
    kill_the_guard(tree)
    with presence.lock(tmp_path):
        tree.end()
    assert not has_ended(child)
