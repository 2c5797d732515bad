"""A remedy can be pasted: it names the pipeline and the root of the command."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from headgate.driver.errors import DefinitionChangedError
from headgate.driver.lease import Lease
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.resets import ResetTarget
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from tests.support.decisions import reset_to
from tests.support.failing import dying
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]
NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)


def test_of_tables_that_await_a_reset(ask: Ask, of_lake: OfLake, empty_lake: Lake) -> None:
    reset_to(empty_lake.control, {"gold/per_minute": ResetTarget()}, NOW)
    assert f"headgate start {of_lake[0]}" in ask("savepoint", "create", *of_lake)[2]
    code, _, err = ask("compact", *of_lake)
    assert code == 6
    assert f"headgate run {of_lake[0]} --once" in err


def test_of_a_pipeline_that_runs(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    held = Lease(lake.layout, LAYERS, "tiny")
    held.take()
    try:
        create_savepoint(lake.layout, lake.pipeline, NOW)
        code, _, err = ask("savepoint", "restore", of_lake[0], "latest", *of_lake[1:])
    finally:
        held.release()
    assert code == 6
    assert f"headgate stop {of_lake[0]}" in err
    assert "--take-over" not in err, "a driver that has taken over is in the way as well"


def test_of_a_root_without_tables(ask: Ask, of_lake: OfLake) -> None:
    err = ask("savepoint", "create", of_lake[0], "--root", "no where")[2]
    assert f"headgate run {of_lake[0]} --root '{Path.cwd()}/no where' --once" in err


def test_of_a_damaged_savepoint(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    lake.layout.storage.write(Layout.savepoint("s1"), b"{}")
    assert f"headgate savepoint delete {of_lake[0]} s1" in ask("vacuum", *of_lake)[2]


def test_of_a_savepoint_that_cannot_be_restored(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    savepoint = create_savepoint(lake.layout, lake.pipeline, NOW)
    next(Path(lake.layout.storage.uri("silver/good/data")).rglob("*.parquet")).unlink()
    code, _, err = ask("savepoint", "restore", of_lake[0], "latest", *of_lake[1:])
    assert code == 5
    assert f"headgate savepoint verify {of_lake[0]} {savepoint.id}" in err


def test_of_another_declaration(lake: Lake) -> None:
    error = DefinitionChangedError(lake.pipeline, "gold/per_minute")
    assert "headgate plan PIPELINE" in str(error)
    assert str(error).endswith("headgate upgrade PIPELINE")


def test_of_half_a_copy(ask: Ask, of_lake: OfLake, lake: Lake, tmp_path: Path) -> None:
    """The savepoint is in the pipeline that was copied, not in the copy."""
    savepoint = create_savepoint(lake.layout, lake.pipeline, NOW)
    copy = str(tmp_path / "copy")
    with dying():
        clone_savepoint(lake.layout, savepoint, Layout.of(copy, "tiny"))
    code, _, err = ask("vacuum", of_lake[0], "--root", copy)
    assert code == 5
    again = ["savepoint", "restore", of_lake[0], savepoint.id, "--to", copy, *of_lake[1:]]
    assert f"headgate {shlex.join(again)}, or" in err
    assert ask(*again)[0] == 0
