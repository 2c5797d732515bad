"""`list` and `status` find a pipeline that has another root or another declaration."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.lake.control.ownership import Owner
from headgate.supervision import discovery
from headgate.supervision.discovery import RunningDriver
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease

OfLake = tuple[str, str, str]


@pytest.fixture
def running(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> RunningDriver:
    """A driver of the tiny lake, as its command line shows it."""
    owner = Owner.here()
    lease(lake.layout, owner, renewed=datetime.now(UTC))
    root = Path(lake.layout.storage.root).parent
    found = RunningDriver(owner.pid, lake.pipeline.file, root)
    monkeypatch.setattr(discovery, "running_drivers", lambda: iter([found]))
    return found


@pytest.fixture
def apart(running: RunningDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder, with a copy of the declaration."""
    folder = tmp_path / "apart"
    folder.mkdir()
    shutil.copy(running.declared, folder / "tiny.yml")
    return folder


def test_it_runs_under_another_root(
    ask: Ask, running: RunningDriver, apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(apart)
    code, out, _ = ask("status", "tiny")
    assert code == 0
    assert "it has never run under" in out
    assert f"tiny: running under {running.root} (process {running.pid})" in out
    told = out.splitlines()[-1]
    assert told == f"headgate status {running.declared} --root {running.root}"
    (seen,) = last_object(ask("status", "tiny", "--json")[1])["elsewhere"]
    assert (seen["root"], seen["file"]) == (str(running.root), str(running.declared))
    out = ask("list")[1]
    assert "never run here" in out
    assert f"running under {running.root} (process {running.pid})" in out
    assert str(running.declared) in out


def test_it_runs_from_another_declaration(
    ask: Ask, running: RunningDriver, apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(apart)
    out = ask("status", "tiny", "--root", str(running.root))[1]
    assert f"process {running.pid} runs another declaration of this name" in out
    assert str(running.declared) in out


def test_what_has_no_declaration_here_is_listed_too(
    ask: Ask, running: RunningDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    (seen,) = last_object(ask("list", "--json")[1])["others"]
    assert (seen["pipeline"], seen["pid"]) == ("tiny", running.pid)
    assert str(running.declared) in ask("list")[1]


def test_a_pipeline_under_this_root_is_not_listed_as_elsewhere(
    ask: Ask, of_lake: OfLake, running: RunningDriver
) -> None:
    assert last_object(ask("status", *of_lake, "--json")[1])["elsewhere"] == []


def test_at_rest_it_is_found_beside_its_declaration(
    ask: Ask, lake: Lake, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "running_drivers", lambda: iter([]))
    lease(lake.layout, Owner.here(), released=True)
    out = ask("status", of_lake[0], "--root", "no_such")[1]
    assert f"tiny: stopped under {of_lake[2]}" in out
    assert f"headgate status {of_lake[0]}" in out.splitlines()[-1]
