"""Whether Airflow has started, and why not, as far as its logs say it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from headgate.machine.process_tree import guard, owner
from headgate.machine.process_tree.ports import HOST, free_port
from headgate.setup.standalone.running import LOGS, _failure, _new_password, _not_healthy, start
from headgate.setup.standalone.settings import ADMIN, AirflowSettings, StandaloneError
from tests.support.full_disk import run_on_full_disk

OUTPUT = """\
Traceback (most recent call last):
  File "engine.py", line 1
sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) {said}
(Background on this error at: https://sqlalche.me/e/20/e3q8)
"""


@pytest.fixture
def settings(tmp_path: Path) -> AirflowSettings:
    database = "postgresql://u:p%40ss@x/d"
    return AirflowSettings(tmp_path, tmp_path, tmp_path, None, 1, database=database)


def test_a_password_that_was_never_shown_is_none(
    settings: AirflowSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        assert settings.passwords.exists()
        raise _failure(settings, guard.NOT_PREPARED)

    monkeypatch.setattr(owner, "start", fails)
    with pytest.raises(StandaloneError, match="cannot use the database"):
        start(settings, {})
    assert not settings.passwords.exists()


def test_a_full_disk_leaves_no_file_of_passwords(settings: AirflowSettings) -> None:
    said = run_on_full_disk(
        "from headgate.setup.standalone.running import _new_password\n"
        "_new_password(Path(sys.argv[1]))",
        settings.passwords,
    )
    assert said.startswith("OSError")
    assert not settings.passwords.exists()


@pytest.mark.parametrize("damaged", ["", "{}", "[]", '{"admin": ', '{"admin": ""}'])
def test_a_file_without_a_password_is_replaced(settings: AirflowSettings, damaged: str) -> None:
    """Airflow would make one, and write it to its log."""
    settings.passwords.write_text(damaged)
    password = _new_password(settings.passwords)
    assert json.loads(settings.passwords.read_text()) == {ADMIN: password}
    assert password


def test_a_password_stays_valid(settings: AirflowSettings) -> None:
    settings.passwords.write_text('{"admin": "mine", "other": "x"}\n')
    assert _new_password(settings.passwords) is None
    assert settings.passwords.read_text() == '{"admin": "mine", "other": "x"}\n'


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('could not translate host name "x"', 'could not translate host name "x"'),
        ("postgresql+psycopg2://u:p%40ss@x/d is wrong", "… is wrong"),
        ("the password p@ss is wrong", "the password … is wrong"),
    ],
)
def test_a_database_that_cannot_be_used(
    said: str, shown: str, tmp_path: Path, settings: AirflowSettings
) -> None:
    (tmp_path / LOGS).mkdir()
    (tmp_path / LOGS / f"{guard.PREPARE}.log").write_text(OUTPUT.format(said=said))
    error = _failure(settings, guard.NOT_PREPARED)
    assert error.message.splitlines() == [
        "Airflow cannot use the database of HEADGATE_AIRFLOW_DB:",
        f"sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) {shown}",
    ]
    assert error.remedy.startswith("correct HEADGATE_AIRFLOW_DB; its output: ")


@pytest.fixture
def healthy() -> Iterator[str]:
    """The address of an Airflow whose components are healthy."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({each: {"status": "healthy"} for each in parts}).encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer((HOST, 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}"
        server.shutdown()
        thread.join()


def test_no_proxy_is_asked_whether_it_is_healthy(
    healthy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://{HOST}:{free_port()}")
    assert _not_healthy(healthy) == []
