"""The guard, with small programs as its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from headgate.machine.process_tree import guard, presence
from headgate.machine.process_tree.guard import Child, Guard, Order
from headgate.machine.process_tree.members import MARK, started
from headgate.machine.process_tree.ports import free_port
from headgate.machine.process_tree.presence import Presence, ProcessTreeError
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from _typeshed import TraceFunction

PATIENCE = 20.0  # seconds

WAITING = "import time; time.sleep(60)"
SAYING = f"""
import os, pathlib, signal, sys, time
from headgate.machine.process_tree.presence import ends_on_request

def say(number, frame):
    folder.joinpath("said").write_text(str(ends_on_request(os.environ)))
    sys.exit()

folder = pathlib.Path(os.environ[{MARK!r}])
signal.signal(signal.SIGTERM, say)
folder.joinpath("begun").touch()
time.sleep(60)
"""
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITING}"

Launch = Callable[[Order], "subprocess.Popen[bytes]"]


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def touches(file: Path, after: Path | None = None) -> tuple[str, ...]:
    """A command that waits until ``after`` exists, if it is given, and then writes to ``file``."""
    code = "import pathlib, sys, time\n"
    if after is not None:
        code += f"while not pathlib.Path({str(after)!r}).exists(): time.sleep(0.02)\n"
    return python(f"{code}open({str(file)!r}, 'a').write('x')")


@pytest.fixture
def order(tmp_path: Path) -> Order:
    (tmp_path / "logs").mkdir()
    return Order(
        folder=str(tmp_path),
        work=str(tmp_path),
        environment=dict(os.environ),
        children={"child": Child(python(WAITING), ended="all end")},
        tell={"servers": "127.0.0.1:9092"},
        graces=(0.5, 0.5),
    )


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Starts a guard. All guards and their processes are killed after the test."""
    launched: list[subprocess.Popen[bytes]] = []

    def start(order: Order) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", guard.__name__], stdin=subprocess.PIPE, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(order.line())
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


def served(folder: Path) -> Presence:
    def found() -> Presence | None:
        here = presence.running(folder)
        return here if here and "child" in here.children else None

    wait_until(found, "nothing is served", PATIENCE)
    here = found()
    assert here is not None
    return here


def gone(here: Presence) -> bool:
    """The child of a killed guard may stay as a zombie, if no process reaps it."""
    try:
        return psutil.Process(here.children["child"]).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_the_document_names_the_guard_and_its_details(
    tmp_path: Path, order: Order, launch: Launch
) -> None:
    process = launch(order)
    here = served(tmp_path)
    assert (here.guard, here.told) == (process.pid, order.tell)
    assert psutil.Process(here.children["child"]).cmdline()[-1] == WAITING


@pytest.mark.slow
def test_it_ends_what_it_runs_when_its_owner_is_gone(
    tmp_path: Path, order: Order, launch: Launch
) -> None:
    process = launch(order)
    here = served(tmp_path)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    assert gone(here)
    assert presence.running(tmp_path) is None
    assert presence.read(tmp_path) is None


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_child_knows_whether_its_end_was_asked_for(
    tmp_path: Path, order: Order, launch: Launch, is_asked: bool
) -> None:
    """An owner that is killed asks for nothing: it closes stdin."""
    begun, said = tmp_path / "begun", tmp_path / "said"
    process = launch(
        replace(order, graces=(PATIENCE, 0.5), children={"child": Child(python(SAYING))})
    )
    served(tmp_path)
    wait_until(begun.exists, "it has not begun", PATIENCE)
    assert process.stdin is not None
    process.terminate() if is_asked else process.stdin.close()
    assert process.wait(PATIENCE) == 0
    assert said.read_text() == str(is_asked)


@pytest.mark.slow
def test_a_detached_one_outlives_its_owner(tmp_path: Path, order: Order, launch: Launch) -> None:
    process = launch(replace(order, owned=False))
    assert process.stdin is not None
    process.stdin.close()
    here = served(tmp_path)
    assert not gone(here)
    assert presence.end(tmp_path) == here
    assert process.wait(PATIENCE) == 0
    assert gone(here)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_both(
    tmp_path: Path, order: Order, launch: Launch, number: signal.Signals
) -> None:
    process = launch(order)
    here = served(tmp_path)
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0
    assert gone(here)


@pytest.mark.slow
def test_a_signal_may_come_at_any_line(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that takes a lock would hang if the interrupted line holds the lock."""
    monkeypatch.setattr(guard, "_POLL", 0.001)
    monkeypatch.setattr(psutil, "pids", list)  # it has no children; the search for them is slow
    for line in range(120):
        runs = Guard(replace(order, children={}))
        thread = threading.Thread(target=interrupted, args=(runs, line), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"it hangs after a signal before its line {line}"


def interrupted(runs: Guard, at: int) -> None:
    """Serve, with a signal before line ``at`` of the lines that keep the tree and wait."""
    lines = iter(range(at))

    def interrupt(frame: FrameType, event: str, _: Any) -> TraceFunction | None:
        code = frame.f_code
        if code.co_name != "_keep" and code.co_filename != threading.__file__:
            return None
        if event == "line" and next(lines, None) is None:
            sys.settrace(None)
            runs.end()
        return interrupt

    sys.settrace(interrupt)
    runs.serve()


@pytest.mark.slow
def test_what_does_not_end_is_killed(tmp_path: Path, order: Order, launch: Launch) -> None:
    process = launch(replace(order, children={"child": Child(python(STUBBORN))}))
    here = served(tmp_path)
    assert presence.end(tmp_path) == here
    process.wait(PATIENCE)
    assert gone(here)


@pytest.mark.slow
def test_a_folder_is_one_guards(tmp_path: Path, order: Order, launch: Launch) -> None:
    launch(replace(order, files={"properties": "first"}))
    here = served(tmp_path)
    second = launch(replace(order, files={"properties": "second"}))
    assert second.wait(PATIENCE) == guard.IN_USE
    assert presence.running(tmp_path) == here
    assert (tmp_path / "properties").read_text() == "first"


@pytest.mark.slow
@pytest.mark.parametrize("by", ["the next guard", "whoever ends it"])
def test_what_a_killed_guard_left_is_ended(
    tmp_path: Path, order: Order, launch: Launch, by: str
) -> None:
    process = launch(order)
    here = served(tmp_path)
    process.kill()
    process.wait(PATIENCE)
    assert presence.running(tmp_path) is None
    assert not gone(here)
    if by == "the next guard":
        launch(order)
        wait_until(lambda: served(tmp_path).guard != here.guard, "it is not started", PATIENCE)
    else:
        assert presence.end(tmp_path) == here
        assert presence.end(tmp_path) is None
    assert gone(here)


@pytest.mark.slow
def test_the_exit_code_is_that_of_what_ended_by_itself(
    tmp_path: Path, order: Order, launch: Launch
) -> None:
    code = python("import sys; print('no'); sys.exit(3)")
    process = launch(replace(order, children={"child": Child(code, ended="all end")}))
    assert process.wait(PATIENCE) == 3
    assert (tmp_path / "logs" / "child.log").read_text() == "no\n"


@pytest.mark.slow
def test_the_exit_code_of_a_killed_child_gives_the_signal(
    tmp_path: Path, order: Order, launch: Launch
) -> None:
    process = launch(order)
    os.kill(served(tmp_path).children["child"], signal.SIGKILL)
    assert process.wait(PATIENCE) == 128 + signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(("code", "ends", "serves"), [(0, 0, True), (4, guard.NOT_PREPARED, False)])
def test_a_folder_is_prepared_first(
    tmp_path: Path, order: Order, launch: Launch, code: int, ends: int, serves: bool
) -> None:
    served = Child(touches(tmp_path / "served"), ended="all end")
    prepare = python(f"import sys; sys.exit({code})")
    process = launch(replace(order, prepare=prepare, children={"child": served}))
    assert process.wait(PATIENCE) == ends
    assert (tmp_path / "served").exists() is serves


@pytest.mark.slow
def test_what_is_beside_does_not_wait_and_what_died_is_started_again(
    tmp_path: Path, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "AGAIN_AFTER", 0.0)
    monkeypatch.setattr(guard, "_POLL", 0.02)
    fed, driven, prepared, served = (tmp_path / n for n in ("fed", "driven", "prepared", "served"))
    runs = Guard(
        replace(
            order,
            # This ends only if both others already run.
            prepare=touches(prepared, after=driven),
            children={
                "server": Child(touches(served)),
                "producer": Child(touches(fed), prepared=False),
                "driver": Child(touches(driven, after=fed), prepared=False, ended="left"),
            },
        )
    )

    thread = threading.Thread(target=runs.serve)
    thread.start()
    try:
        wait_until(lambda: served.exists() and len(served.read_text()) > 1, "served again", 60)
    finally:
        runs.end()
        thread.join(PATIENCE)
    assert prepared.exists()
    assert driven.read_text() == "x"


# Serves a port from a process of its own, as a scheduler of Airflow serves logs.
FORKS = """
import os, signal, socket, time
if os.fork():
    time.sleep(60)
server = socket.create_server(("127.0.0.1", {port}))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({file!r}, "a").write(f"{{os.getpid()}} ")
time.sleep(60)
"""


@pytest.mark.slow
def test_what_a_killed_child_has_left_ends_before_it_is_started_again(
    tmp_path: Path, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "AGAIN_AFTER", 0.0)
    said = tmp_path / "said"
    said.touch()
    child = Child(python(FORKS.format(port=free_port(), file=str(said))))
    runs = Guard(replace(order, children={"child": child}))
    thread = threading.Thread(target=runs.serve)
    thread.start()
    try:
        wait_until(lambda: len(said.read_text().split()) == 1, "it does not serve", PATIENCE)
        runs.running["child"].kill()
        wait_until(lambda: len(said.read_text().split()) == 2, "it does not serve again", PATIENCE)
        first, second = map(int, said.read_text().split())
        assert not psutil.pid_exists(first) or psutil.Process(first).status() == "zombie"
        assert psutil.pid_exists(second)
    finally:
        runs.end()
        thread.join(PATIENCE)


def test_files_are_for_this_user_alone_and_logs_of_the_run_before_are_set_aside(
    tmp_path: Path, order: Order, launch: Launch
) -> None:
    (tmp_path / "logs" / "server.log").write_text("before")
    launch(replace(order, files={"properties": "secret"}))
    served(tmp_path)
    assert (tmp_path / "properties").stat().st_mode & 0o077 == 0
    assert (tmp_path / "logs" / "server-before.log").read_text() == "before"
    assert not (tmp_path / "logs" / "server.log").exists()


def test_where_nothing_runs_there_is_nothing_to_end(tmp_path: Path) -> None:
    assert presence.running(tmp_path / "nowhere") is None
    assert presence.end(tmp_path / "nowhere") is None
    assert presence.end(tmp_path) is None


@pytest.mark.slow
def test_a_process_that_only_has_the_pid_is_left_alone(
    tmp_path: Path, order: Order, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(order)
    here = served(tmp_path)
    other = subprocess.Popen(python(WAITING))
    began = started(psutil.Process(other.pid)) - 3_600
    presence.announce(tmp_path, replace(here, guard=other.pid, began=began, within=0.0))
    monkeypatch.setattr(presence, "_SLACK", 0.2)
    said = rf"process {other.pid}, .* its processes: python.* {here.children['child']} \(\S+\)"
    with pytest.raises(ProcessTreeError, match=said):
        presence.end(tmp_path)
    assert other.poll() is None
    other.kill()
    other.wait()
    assert not gone(here)
