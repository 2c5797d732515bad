"""The guard with other programs in the place of Java's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from headgate.broker import guard, presence
from headgate.broker.errors import BrokerError
from tests.support.waiting import wait_until

PATIENCE = 20.0  # seconds

# Its command line has the word by which a broker's JVM is known.
SERVE = (sys.executable, "-c", "import time; time.sleep(60)", "kafka.Kafka")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
    "kafka.Kafka",
)

Launch = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start a guard on the test's folder; all that were started are gone afterwards."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "formatted").touch()
    launched: list[subprocess.Popen[bytes]] = []

    def start(**order: Any) -> subprocess.Popen[bytes]:
        order = {
            "folder": str(tmp_path),
            "owned": True,
            "files": {},
            "formatted": "formatted",
            "format": [],
            "serve": SERVE,
            "tell": {"servers": "127.0.0.1:9092", "sasl_servers": None},
            **order,
        }
        process = subprocess.Popen(
            [sys.executable, "-I", guard.__file__], stdin=subprocess.PIPE, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        launched.append(process)
        return process

    yield start
    for process in launched:
        for member in _family(process.pid):
            member.kill()
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return []


def served(folder: Path) -> presence.Presence:
    def found() -> presence.Presence | None:
        here = presence.running(folder)
        return here if here and here.jvm else None

    wait_until(found, "nothing is served", PATIENCE)
    here = found()
    assert here is not None
    return here


def gone(pid: int | None) -> bool:
    """A process of a guard that was killed may stay as a zombie, where nobody reaps it."""
    try:
        return pid is None or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_it_tells_who_runs_and_for_whom(tmp_path: Path, launch: Launch) -> None:
    process = launch()
    here = served(tmp_path)
    assert (here.guard, here.servers, here.sasl_servers) == (process.pid, "127.0.0.1:9092", None)
    assert here.pid == here.jvm
    assert psutil.Process(here.pid).cmdline()[-1] == "kafka.Kafka"


def test_it_ends_what_it_runs_when_its_owner_is_gone(tmp_path: Path, launch: Launch) -> None:
    process = launch()
    here = served(tmp_path)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    assert gone(here.jvm)
    assert presence.running(tmp_path) is None
    assert not (tmp_path / guard.DOCUMENT).exists()


def test_a_detached_one_outlives_its_owner(tmp_path: Path, launch: Launch) -> None:
    process = launch(owned=False)
    assert process.stdin is not None
    process.stdin.close()
    here = served(tmp_path)
    assert not gone(here.jvm)
    assert presence.end(tmp_path) == here
    assert process.wait(PATIENCE) == 0
    assert gone(here.jvm)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_both(tmp_path: Path, launch: Launch, number: signal.Signals) -> None:
    process = launch()
    here = served(tmp_path)
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0
    assert gone(here.jvm)


def test_what_does_not_end_is_killed(
    tmp_path: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = launch(serve=STUBBORN)
    here = served(tmp_path)
    monkeypatch.setattr(presence, "_ENDS_WITHIN", 0.5)
    assert presence.end(tmp_path) == here
    process.wait(PATIENCE)
    assert gone(here.jvm)


def test_a_folder_is_one_guards(tmp_path: Path, launch: Launch) -> None:
    launch(files={"server.properties": "first"})
    here = served(tmp_path)
    second = launch(files={"server.properties": "second"})
    assert second.wait(PATIENCE) == guard.IN_USE
    assert presence.running(tmp_path) == here
    assert (tmp_path / "server.properties").read_text() == "first"


def test_the_folder_stays_locked_while_what_it_ran_lives(tmp_path: Path, launch: Launch) -> None:
    process = launch()
    here = served(tmp_path)
    process.kill()
    process.wait(PATIENCE)
    assert presence.running(tmp_path) == here
    assert presence.end(tmp_path) == here
    assert gone(here.jvm)
    assert presence.running(tmp_path) is None


def test_the_exit_code_is_that_of_what_ended_by_itself(tmp_path: Path, launch: Launch) -> None:
    process = launch(serve=[sys.executable, "-c", "import sys; print('no'); sys.exit(3)"])
    assert process.wait(PATIENCE) == 3
    assert (tmp_path / guard.JVM_LOG).read_text() == "no\n"


def test_the_exit_code_of_what_was_killed_tells_the_signal(tmp_path: Path, launch: Launch) -> None:
    process = launch()
    pid = served(tmp_path).jvm
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert process.wait(PATIENCE) == 128 + signal.SIGKILL


@pytest.mark.parametrize(("code", "serves"), [(0, True), (4, False)])
def test_a_new_folder_is_formatted_first(
    tmp_path: Path, launch: Launch, code: int, serves: bool
) -> None:
    (tmp_path / "formatted").unlink()
    mark = [sys.executable, "-c", "open('served', 'w')"]
    form = [sys.executable, "-c", f"import sys; sys.exit({code})"]
    process = launch(format=form, serve=mark)
    assert process.wait(PATIENCE) == code
    assert (tmp_path / "served").exists() is serves


def test_files_are_for_this_user_alone_and_logs_of_the_run_before_are_set_aside(
    tmp_path: Path, launch: Launch
) -> None:
    (tmp_path / "logs" / "server.log").write_text("before")
    launch(files={"server.properties": "secret"})
    served(tmp_path)
    assert (tmp_path / "server.properties").stat().st_mode & 0o077 == 0
    assert (tmp_path / "logs" / "server-before.log").read_text() == "before"
    assert not (tmp_path / "logs" / "server.log").exists()


def test_where_nothing_runs_there_is_nothing_to_end(tmp_path: Path) -> None:
    assert presence.running(tmp_path / "nowhere") is None
    assert presence.end(tmp_path) is None


def test_a_process_that_only_has_the_pid_is_left_alone(
    tmp_path: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = launch()
    here = served(tmp_path)
    told = {"guard": os.getpid(), "jvm": os.getpid(), "servers": "", "sasl_servers": None}
    (tmp_path / guard.DOCUMENT).write_text(json.dumps(told))
    monkeypatch.setattr(presence, "_ENDS_WITHIN", 0.2)
    with pytest.raises(BrokerError, match=f"process {os.getpid()}"):
        presence.end(tmp_path)
    assert process.poll() is None
    assert not gone(here.jvm)
