"""A start that the driver would refuse is refused before a process is started."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.declaration.load import load
from headgate.driver.lease import Lease
from headgate.history.savepoints.resets import ResetTarget
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.format import FORMAT
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table
from headgate.supervision import local
from tests.support.decisions import control_of, reset_to, resets_of
from tests.support.declared import files_of
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import DECLARATION, SCHEMAS

OfLake = tuple[str, str, str]
NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Empty tables that were created from the declaration."""
    declared = load(tiny(tmp_path))
    layout = Layout.of(str(tmp_path / "lake"), "tiny")
    for path, digest in declared.definitions.items():
        parts = [("final", pa.bool_())] if path.startswith("gold/") else []
        table = Table(layout.storage, path, pipeline="tiny")
        table.create(pa.schema([*SCHEMAS[path], *parts]), digest, time_column="time")
    control_of(layout.storage, "tiny")
    Path(files_of(declared).path).mkdir(parents=True, exist_ok=True)
    return layout


def tiny(folder: Path) -> Path:
    file = folder / "tiny.yml"
    if not file.exists():
        file.write_text(DECLARATION)
    return file


@pytest.fixture
def of_lake(layout: Layout, tmp_path: Path) -> OfLake:
    return str(tiny(tmp_path)), "--root", str(tmp_path / "lake")


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options of each started process. Empty if the start is refused in time."""
    starts: list[str] = []

    def launch(*arguments: object) -> local.Started:
        starts.append(str(arguments[3]))
        return local.Started(1)

    monkeypatch.setattr(local, "launch", launch)
    return starts


def change(file: str) -> None:
    text = Path(file).read_text()
    assert "1 minute" in text
    Path(file).write_text(text.replace("1 minute", "2 minutes", 1))


def test_what_is_in_order_is_started(ask: Ask, of_lake: OfLake, launched: list[str]) -> None:
    assert ask("start", *of_lake)[0] == 0
    assert launched == ["[]"]


def test_another_process_runs_it(
    ask: Ask, of_lake: OfLake, layout: Layout, launched: list[str]
) -> None:
    held = Lease(layout, LAYERS, "tiny")
    held.take()
    try:
        code, _, err = ask("start", *of_lake)
        assert code == 6
        assert f"headgate start {of_lake[0]} --take-over" in err
        assert launched == []
        assert ask("start", *of_lake, "--take-over")[0] == 0
    finally:
        held.release()
    assert launched == ["['--take-over']"]


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_another_declaration(
    ask: Ask, of_lake: OfLake, launched: list[str], verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[object] = []
    monkeypatch.setattr(local, "stop", stopped.append)
    change(of_lake[0])
    code, _, err = ask(verb, *of_lake)
    assert code == 2
    assert f"headgate upgrade {of_lake[0]}" in err
    assert (launched, stopped) == ([], [])


def test_a_reset_that_is_open_is_the_drivers(
    ask: Ask, of_lake: OfLake, layout: Layout, launched: list[str]
) -> None:
    change(of_lake[0])
    both = {"gold/per_minute": ResetTarget(), "late/per_minute": ResetTarget()}
    reset_to(control_of(layout.storage, "tiny"), both, NOW + timedelta(days=1))
    code, _, err = ask("start", *of_lake)
    assert (code, launched) == (0, ["[]"]), err


def test_a_restore_before_the_start(
    ask: Ask, of_lake: OfLake, layout: Layout, launched: list[str]
) -> None:
    """A start that is refused has reset no table."""
    declared = load(Path(of_lake[0]))
    taken = create_savepoint(layout, declared, NOW)
    resets = resets_of(layout.storage, "tiny")
    back = ("--from-savepoint", taken.id)
    folder = Path(files_of(declared).path)
    folder.rmdir()
    for more, refused in (("--accept-gap",), 2), ((), 3):
        assert ask("start", *of_lake, *back, *more)[0] == refused
        assert (resets.generation, launched) == (0, [])
    folder.mkdir()
    code, _, err = ask("start", *of_lake, *back)
    assert (code, launched) == (0, ["[]"]), err
    assert resets.generation == 1


def test_damage(ask: Ask, of_lake: OfLake, layout: Layout, launched: list[str]) -> None:
    logs = sorted(Path(layout.storage.uri("gold/per_minute/_delta_log")).glob("*.json"))
    logs[-1].write_text("{")
    code, _, err = ask("start", *of_lake)
    assert code == 5
    assert f"headgate repair {of_lake[0]} --dry-run" in err
    assert launched == []


@pytest.mark.parametrize("verb", ["plan", "status", "doctor", "run"])
def test_tables_of_another_format_are_refused_by_name(
    ask: Ask, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    for module in ("storage.format", "storage.documents", "tables.log"):
        monkeypatch.setattr(f"headgate.lake.{module}.FORMAT", FORMAT + 1)
    code, out, err = ask(verb, *of_lake)
    assert code == 2, err
    said = " ".join((out + err).split())
    assert f"an earlier Headgate wrote it in format {FORMAT}" in said
    assert f"headgate run {of_lake[0]} --root " in said
