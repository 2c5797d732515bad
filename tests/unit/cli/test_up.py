"""``headgate up`` when Airflow ends without a request."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate import exit_codes
from headgate.cli.setup import up as verb
from headgate.process_tree import guard
from headgate.standalone import running
from headgate.standalone.running import LOGS, Standalone
from headgate.standalone.settings import Settings
from tests.unit.cli.conftest import Ask


@dataclass
class Tree:
    """A tree whose guard has ended with ``code``."""

    code: int
    pid: int = 4711
    ended: list[bool] = field(default_factory=list)

    def end(self) -> None:
        self.ended.append(True)


@pytest.fixture
def up(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Tree], Any]:
    """Run ``headgate up`` with a tree."""
    (tmp_path / "dags").mkdir()
    monkeypatch.setattr(running, "require_airflow", lambda: None)
    monkeypatch.setattr(verb, "require_java", lambda: None)

    def run(tree: Tree) -> tuple[int, str, str]:
        def start(settings: Settings, *_: object, **__: object) -> Standalone:
            log = settings.home / LOGS / guard.LOG
            log.parent.mkdir(parents=True)
            log.write_text("Traceback\nOSError: [Errno 28] No space left on device\n")
            started: Any = tree
            return Standalone(settings, None, started)

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


def test_an_end_after_down_needs_no_message(up: Callable[[Tree], Any]) -> None:
    tree = Tree(0)
    ended, _, err = up(tree)
    assert (ended, "ended" in err, tree.ended) == (0, False, [True])
