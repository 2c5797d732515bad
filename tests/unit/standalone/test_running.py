"""Why Airflow did not start, as far as its logs say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.process_tree import guard, owner
from headgate.standalone.errors import StandaloneError
from headgate.standalone.running import LOGS, _failure, start
from headgate.standalone.settings import Ports, Settings

OUTPUT = """\
Traceback (most recent call last):
  File "engine.py", line 1
sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) {said}
(Background on this error at: https://sqlalche.me/e/20/e3q8)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    database = "postgresql://u:p%40ss@x/d"
    return Settings(tmp_path, tmp_path, tmp_path, None, Ports(1, 2, 3), database=database)


def test_a_password_that_was_never_shown_is_none(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        assert settings.passwords.exists()
        raise _failure(settings, guard.NOT_PREPARED)

    monkeypatch.setattr(owner, "start", fails)
    with pytest.raises(StandaloneError, match="cannot use the database"):
        start(settings, {})
    assert not settings.passwords.exists()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('could not translate host name "x"', 'could not translate host name "x"'),
        ("postgresql+psycopg2://u:p%40ss@x/d is wrong", "… is wrong"),
        ("the password p@ss is wrong", "the password … is wrong"),
    ],
)
def test_a_database_that_cannot_be_used(
    said: str, shown: str, tmp_path: Path, settings: Settings
) -> None:
    (tmp_path / LOGS).mkdir()
    (tmp_path / LOGS / f"{guard.PREPARE}.log").write_text(OUTPUT.format(said=said))
    error = _failure(settings, guard.NOT_PREPARED)
    assert error.message.splitlines() == [
        "Airflow cannot use the database of HEADGATE_AIRFLOW_DB:",
        f"sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) {shown}",
    ]
    assert error.remedy.startswith("correct HEADGATE_AIRFLOW_DB; its output: ")
