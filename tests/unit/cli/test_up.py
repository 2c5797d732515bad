"""``headgate up``: its passwords, and Airflow that ends without a request."""

from __future__ import annotations

import errno
import re
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate import exit_codes
from headgate.cli.setup import up as verb
from headgate.insight.dashboard import FOLDER
from headgate.insight.dashboard.login.passwords import FILE, Password, made
from headgate.machine.process_tree import guard
from headgate.setup.standalone import running
from headgate.setup.standalone.dashboard import Beside
from headgate.setup.standalone.running import LOGS, Standalone
from headgate.setup.standalone.settings import AirflowSettings
from tests.unit.cli.conftest import Ask


@dataclass
class Tree:
    """A tree whose guard has ended with ``code``."""

    code: int
    pid: int = 4711
    ended: list[bool] = field(default_factory=list)
    at_start: Callable[[], object] = field(default=lambda: None)
    password: str | None = None

    def end(self) -> None:
        self.ended.append(True)


@pytest.fixture
def up(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Tree], Any]:
    """Run ``headgate up`` with a tree."""
    (tmp_path / "dags").mkdir()
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/shop.yml").touch()
    monkeypatch.setattr(running, "require_airflow", lambda: None)
    monkeypatch.setattr(verb, "require_java", lambda: None)

    def run(tree: Tree) -> tuple[int, str, str]:
        def start(settings: AirflowSettings, *_: object, **__: object) -> Standalone:
            log = settings.home / LOGS / guard.LOG
            log.parent.mkdir(parents=True)
            log.write_text("Traceback\nOSError: [Errno 28] No space left on device\n")
            started: Any = tree
            tree.at_start()
            if tree.password is not None:
                settings.passwords.write_text(tree.password)
            return Standalone(settings, tree.password, started)

        monkeypatch.setattr(running, "start", start)
        return ask("up", "--dags", "dags", "--port", "0", "--root", tmp_path / "tables")

    return run


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (-signal.SIGKILL, "process 4711, which kept Airflow running, was killed, by somebody"),
        (-signal.SIGSEGV, "process 4711, which kept Airflow running, was ended by signal 11"),
        (1, "Airflow has ended:\nOSError: [Errno 28] No space left on device"),
    ],
)
def test_an_end_without_a_request_is_told(
    up: Callable[[Tree], Any], tmp_path: Path, code: int, says: str
) -> None:
    tree = Tree(code)
    ended, _, err = up(tree)
    assert (ended, tree.ended) == (exit_codes.NOT_ALIVE, [True])
    assert says in err
    again = f"headgate up --dags dags --port 0 --root {tmp_path / 'tables'}"
    assert f"start it again: {again}" in err


def test_a_used_port_names_a_command_for_the_same_project(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "require_airflow", lambda: None)
    monkeypatch.setattr(verb, "require_java", lambda: None)
    root, dags = tmp_path / "tables", tmp_path / "my dags"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        asked = ("up", "--dags", dags, "--port", port, "--detached", "--root", root)
        ended, _, err = ask(*asked)
    assert ended == exit_codes.USAGE
    assert f"port {port} cannot be used: another process listens there" in err
    again = f"headgate up --dags '{dags}' --port 0 --detached --root {root}"
    assert f"take another one: {again}\n" in err


def test_an_end_after_down_needs_no_message(up: Callable[[Tree], Any]) -> None:
    tree = Tree(0)
    ended, _, err = up(tree)
    assert (ended, "ended" in err, tree.ended) == (0, False, [True])


def test_a_password_that_exists_is_replaced_by_a_command(
    up: Callable[[Tree], Any], tmp_path: Path
) -> None:
    root = tmp_path / "tables"
    made(root / FOLDER)
    _, out, _ = up(Tree(0))
    kept = root / "_airflow/passwords.json"
    again = f"headgate up --dags dags --port 0 --root {root}"
    assert f"password   as it was shown; kept in {kept}\n" in out
    assert f"another one: headgate down --root {root} && rm {kept} && {again}\n" in out
    another = f"headgate dashboard --new-password --port 0 --root {root}"
    assert f"password   as it was shown\n           another one: {another}\n" in out


def test_the_password_of_the_dashboard_is_made_when_it_is_shown(
    up: Callable[[Tree], Any], tmp_path: Path
) -> None:
    folder, hashes = tmp_path / "tables" / FOLDER, []
    tree = Tree(0, at_start=lambda: hashes.append((folder / FILE).read_text()))
    _, out, _ = up(tree)
    assert (folder / FILE).read_text() not in hashes
    shown = re.search(r"^dashboard .*\npassword   (\S+)   \(shown this once\)$", out, re.M)
    assert shown, out
    assert Password(folder).is_right(shown[1])


@pytest.mark.parametrize("password", [None, "new"], ids=["an old one", "a new one"])
def test_airflow_ends_if_the_dashboard_gets_no_password(
    up: Callable[[Tree], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, password: str | None
) -> None:
    """Airflow's password that nobody has seen goes, too: the next start makes another one."""
    kept = tmp_path / "tables/_airflow/passwords.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("shown before")

    def fails(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Beside, "password", fails)
    tree = Tree(0, password=password)
    ended, out, err = up(tree)
    assert (ended, tree.ended, out) == (exit_codes.MACHINE, [True], "")
    assert kept.exists() is (password is None)
    assert "the disk is full" in err
