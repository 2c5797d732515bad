"""The document of a tree, as it is found after a reboot, a power failure or an upgrade."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from headgate.machine.process_tree import presence
from headgate.machine.process_tree.guard import Guard, Order
from headgate.machine.process_tree.members import ProcessSessions, started
from headgate.machine.process_tree.presence import Presence, ProcessTreeError

DOCUMENT = "running.json"
OLD = {
    "guard": 1,
    "began": 10.0,
    "since": 10.0,
    "children": {"child": 4711},
    "sessions": [4711],
    "within": 1.0,
    "told": {},
}
UNREADABLE = ["", "\0\0\0", "[]", "{}", json.dumps(OLD)]


@pytest.fixture
def other() -> Iterator[psutil.Process]:
    """A process that leads a session and has nothing to do with a tree."""
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeping, start_new_session=True) as process:
        yield psutil.Process(process.pid)
        process.kill()


def left(other: psutil.Process, boot: str, began: float) -> Presence:
    """The document that a guard left whose child had the same pid."""
    sessions = ProcessSessions(boot, {other.pid: began})
    return Presence(other.pid, began, 0.0, {"child": other.pid}, sessions, 1.0, {})


def guard(folder: Path) -> Guard:
    return Guard(Order(str(folder), str(folder), {}, children={}, tell={}, graces=(0.1, 0.1)))


def of_another_boot(other: psutil.Process) -> Presence:
    return left(other, "another", started(other))


def of_a_pid_that_was_given_again(other: psutil.Process) -> Presence:
    return left(other, ProcessSessions().boot, started(other) - 3_600)


@pytest.mark.parametrize("document", [of_another_boot, of_a_pid_that_was_given_again])
@pytest.mark.parametrize("by", ["the next guard", "whoever ends it"])
def test_who_only_has_the_pid_of_a_child_is_left_alone(
    tmp_path: Path, other: psutil.Process, by: str, document: Callable[[psutil.Process], Presence]
) -> None:
    found = document(other)
    presence.announce(tmp_path, found)
    if by == "the next guard":
        new = guard(tmp_path)
        new.take_over()
        assert new.sessions.are_of_this_boot()
    else:
        assert presence.end(tmp_path) == found
        assert presence.read(tmp_path) is None
    assert other.status() != psutil.STATUS_ZOMBIE


def test_a_tree_elsewhere_is_not_ended_from_here(tmp_path: Path, other: psutil.Process) -> None:
    with presence.lock(tmp_path):
        presence.announce(tmp_path, of_another_boot(other))
        with pytest.raises(ProcessTreeError, match="another container or on another machine"):
            presence.end(tmp_path)
    assert other.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_unreadable_document_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / DOCUMENT).write_text(text)
    assert presence.end(tmp_path) is None
    new = guard(tmp_path)
    new.take_over()
    assert presence.read(tmp_path) == new.presence


@pytest.mark.parametrize("text", UNREADABLE)
def test_who_holds_the_lock_and_is_not_named_is_to_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(presence, "_ANNOUNCES_WITHIN", 0.0)
    (tmp_path / DOCUMENT).write_text(text)
    with presence.lock(tmp_path), pytest.raises(ProcessTreeError, match=DOCUMENT) as raised:
        presence.end(tmp_path)
    assert f"fuser -v {tmp_path / 'lock'}" in raised.value.remedy


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it may be empty after a power failure."""
    file = tmp_path / DOCUMENT
    synced: list[tuple[str, str]] = []

    def sync(number: int) -> None:
        synced.append((Path(f"{file}.tmp").read_text(), file.read_text()))

    file.write_text("before")
    monkeypatch.setattr(os, "fsync", sync)
    presence.write(file, "after")
    assert synced == [("after", "before")]
    assert file.read_text() == "after"
