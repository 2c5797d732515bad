"""Who belongs to a process tree, and how its members are ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from headgate.machine.process_tree import members
from headgate.machine.process_tree.members import MARK, ProcessSessions, started, this_boot

WAITING = "import time; print(flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITING}"
PARENT = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]).wait()"


@pytest.fixture
def began() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def start(
    began: list[subprocess.Popen[bytes]], *command: str, mark: str | None = None
) -> subprocess.Popen[bytes]:
    told = {} if mark is None else {MARK: mark}
    process = subprocess.Popen(
        [sys.executable, "-c", *command],
        env=os.environ | told,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    began.append(process)
    assert process.stdout is not None
    process.stdout.readline()  # it has started
    return process


def test_members_are_known_by_session_or_environment(
    began: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    since = started(psutil.Process())
    component = start(began, PARENT, WAITING)
    driver = start(began, WAITING, mark=str(tmp_path))
    start(began, WAITING, mark=f"{tmp_path}2")
    sessions = ProcessSessions().plus(psutil.Process(component.pid))
    found = {process.pid for process in members.members(tmp_path, sessions, since)}
    children = {child.pid for child in psutil.Process(component.pid).children()}
    assert found == {component.pid, driver.pid, *children}
    assert len(children) == 1
    assert members.members(tmp_path, sessions, since + 864_000) == []


@pytest.mark.parametrize("by", [3_600, -3_600])
def test_a_session_that_only_has_the_pid_is_none_of_them(
    began: list[subprocess.Popen[bytes]], by: int
) -> None:
    other = psutil.Process(start(began, WAITING).pid)
    assert ProcessSessions(began={other.pid: started(other)}).have(other)
    assert not ProcessSessions(began={other.pid: started(other) + by}).have(other)


def test_a_session_without_a_process_is_forgotten(began: list[subprocess.Popen[bytes]]) -> None:
    """A child that is started again and again does not add an entry each time."""
    ended, orphaned, living = (start(began, PARENT, WAITING) for _ in range(3))
    sessions = ProcessSessions().plus(psutil.Process(ended.pid)).plus(psutil.Process(orphaned.pid))
    children = psutil.Process(ended.pid).children()
    for child in children:
        child.kill()
    for process in (ended, orphaned):
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    sessions = sessions.plus(psutil.Process(living.pid))
    assert set(sessions.began) == {orphaned.pid, living.pid}


def test_sessions_of_another_boot_have_nobody(began: list[subprocess.Popen[bytes]]) -> None:
    other = psutil.Process(start(began, WAITING).pid)
    assert not ProcessSessions("another", {other.pid: started(other)}).have(other)


def test_a_session_outlives_its_leader(began: list[subprocess.Popen[bytes]]) -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WAITING!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", f"{child}; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as leader:
        began.append(leader)
        assert leader.stdin is not None
        assert leader.stdout is not None
        leader.stdout.readline()  # the child has started
        sessions = ProcessSessions().plus(psutil.Process(leader.pid))
        (member,) = psutil.Process(leader.pid).children()
        leader.stdin.close()
        leader.wait()
        assert not psutil.pid_exists(leader.pid)
        assert sessions.have(member)
        assert not ProcessSessions(began={leader.pid: started(member) + 3_600}).have(member)
        member.kill()


def test_a_boot_is_known_by_its_first_process_where_there_is_no_proc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS."""

    def refuse(*_: object) -> None:
        raise FileNotFoundError

    first = psutil.Process(1).create_time()
    assert this_boot.__wrapped__() == this_boot() != ""
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "readlink", refuse)
    assert float(this_boot.__wrapped__()) == pytest.approx(first, abs=1)


@pytest.mark.slow
def test_who_does_not_end_is_killed(began: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    since = started(psutil.Process())
    start(began, STUBBORN, mark=str(tmp_path))
    start(began, WAITING, mark=str(tmp_path))

    def everybody() -> list[psutil.Process]:
        for process in began:
            process.poll()
        return members.members(tmp_path, ProcessSessions(), since)

    assert len(everybody()) == 2
    members.end(everybody, grace=3.0)
    assert everybody() == []
    assert sorted(process.wait() for process in began) == [-15, -9]


def test_what_a_leader_started_is_its_own_to_end(
    began: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """For example, a driver itself ends its JVM, after the batch."""
    since, told = started(psutil.Process()), tmp_path / "told"
    child = f"import signal, sys; signal.signal(15, lambda *_: open({str(told)!r}, 'w')); {WAITING}"
    leader = (
        "import signal, subprocess, sys\n"
        "signal.signal(15, lambda *_: (child.kill(), sys.exit(3)))\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "child.wait()"
    )
    process = start(began, leader, mark=str(tmp_path))

    def everybody() -> list[psutil.Process]:
        process.poll()
        return members.members(tmp_path, ProcessSessions(), since)

    members.end(everybody, grace=20)
    assert process.returncode == 3
    assert not told.exists()


def test_members_are_known_whatever_becomes_of_the_clock(
    began: list[subprocess.Popen[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = started(psutil.Process())
    process = start(began, WAITING, mark=str(tmp_path))
    assert len(members.members(tmp_path, ProcessSessions(), since)) == 1
    corrected = psutil.boot_time() - 3_600
    monkeypatch.setattr("psutil._psplatform.boot_time", lambda: corrected)
    assert [member.pid for member in members.members(tmp_path, ProcessSessions(), since)] == [
        process.pid
    ]
