"""The Python that a session gives its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.driver.workers_python import workers_python

ASKS = "import os, sys; print(sys.executable, os.environ.get('PYTHONPATH'))"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.parametrize("path", [None, "it's here:/there"])
def test_workers_have_the_path_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    with workers_python(tmp_path):
        started = [os.environ["PYSPARK_PYTHON"], "-c", ASKS]
        of_spark = os.environ | {"PYTHONPATH": "pyspark.zip"}
        said = subprocess.run(started, env=of_spark, capture_output=True, text=True, check=True)
    assert said.stdout == f"{sys.executable} {path}\n"
    assert "PYSPARK_PYTHON" not in os.environ


def test_the_choice_of_the_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "mine")
    with workers_python(tmp_path):
        assert os.environ["PYSPARK_PYTHON"] == "mine"
    assert os.environ["PYSPARK_PYTHON"] == "mine"
    assert list(tmp_path.iterdir()) == []


def test_without_a_script_that_runs_it_is_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    with workers_python(tmp_path):
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
