"""Why Airflow did not start, as far as its logs say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.process_tree import guard
from headgate.standalone.running import LOGS, _failure
from headgate.standalone.settings import Ports, Settings

OUTPUT = """\
Traceback (most recent call last):
  File "engine.py", line 1
sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) {said}
(Background on this error at: https://sqlalche.me/e/20/e3q8)
"""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('could not translate host name "x"', 'could not translate host name "x"'),
        ("postgresql+psycopg2://u:p%40ss@x/d is wrong", "… is wrong"),
        ("the password p@ss is wrong", "the password … is wrong"),
    ],
)
def test_a_database_that_cannot_be_used(said: str, shown: str, tmp_path: Path) -> None:
    settings = Settings(
        tmp_path, tmp_path, tmp_path, None, Ports(1, 2, 3), database="postgresql://u:p%40ss@x/d"
    )
    (tmp_path / LOGS).mkdir()
    (tmp_path / LOGS / f"{guard.PREPARE}.log").write_text(OUTPUT.format(said=said))
    error = _failure(settings, guard.NOT_PREPARED)
    assert error.message.splitlines() == [
        "Airflow cannot use the database of HEADGATE_AIRFLOW_DB:",
        f"sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) {shown}",
    ]
    assert error.remedy.startswith("correct HEADGATE_AIRFLOW_DB; its output: ")
