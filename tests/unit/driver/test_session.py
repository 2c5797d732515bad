"""The sessions of drivers, their workers, and their scratch folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.driver.session import (
    _OPTIONS,
    _settings,
    remove_orphaned,
    scratch_folder,
    workers_python,
)
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout


def test_no_path_is_among_the_options_of_the_jvm() -> None:
    """Spark would split the options at the spaces of the path."""
    assert "scratch" not in _settings(2, Path("/my shop/scratch"))[_OPTIONS]


def test_a_folder_with_a_comma_is_not_taken_for_two() -> None:
    assert _settings(2, Path("/s"))["spark.local.dir"] == "/s"
    assert "spark.local.dir" not in _settings(2, Path("/a,b"))


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


FOLDERS = {("fused", 2), ("fused", 5), ("fused", 9), ("bronze", 1), ("bronze", 7), ("silver", 3)}


@pytest.mark.parametrize(
    ("layers", "kept"),
    [
        (LAYERS, {("fused", 5), ("fused", 9), ("bronze", 7)}),
        (("bronze",), FOLDERS - {("bronze", 1)}),
        (("silver",), FOLDERS - {("silver", 3)}),
        (("gold",), FOLDERS),
    ],
)
def test_of_the_own_layers_and_of_lower_epochs(
    tmp_path: Path, layers: tuple[str, ...], kept: set[tuple[str, int]]
) -> None:
    layout = Layout.of(str(tmp_path), "p")
    for job, epoch in FOLDERS:
        inside = scratch_folder(layout, job, epoch) / "spark/offsets"
        inside.mkdir(parents=True)
        (inside / "0").write_text("v1")
    odd = scratch_folder(layout, "fused", 1).with_name("my-notes")
    odd.mkdir()
    remove_orphaned(layout, layers, 5)
    assert odd.exists()
    assert {f for f in FOLDERS if scratch_folder(layout, *f).exists()} == kept


def test_where_nothing_was_left(tmp_path: Path) -> None:
    remove_orphaned(Layout.of(str(tmp_path), "p"), LAYERS, 5)
    assert list(tmp_path.iterdir()) == []
