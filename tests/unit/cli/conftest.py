from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.cli import hidden
from headgate.cli.main import answer
from headgate.declaration.files import project_folder
from headgate.declaration.load import load
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold
from headgate.supervision import discovery
from tests.unit.insight.ledger.conftest import Lake, fill
from tests.unit.insight.ledger.conftest import empty_lake as _empty_lake

empty_lake = _empty_lake

AT = datetime(2026, 5, 4, 12, tzinfo=UTC)
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    """Run a command line in a folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HEADGATE_ROOT", raising=False)
    monkeypatch.setattr(hidden, "_hidden", frozenset())
    # Drivers that run on this machine must not change an answer.
    monkeypatch.setattr(discovery, "running_drivers", lambda: iter(()))

    def run(*arguments: str | os.PathLike[str]) -> tuple[int, str, str]:
        code = answer([str(a) for a in arguments])
        said = capsys.readouterr()
        assert "⟦" not in said.out + said.err, "a command that nobody rendered"
        return code, said.out, said.err

    return run


def last_object(out: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert document["schema"] == 1
    return document


def hold(lake: Lake) -> None:
    n = lake.table("gold/per_minute").refresh().n
    documents.hold(lake.layout, Hold("per_minute", n, n + 4, AT, AT, ()))


@pytest.fixture
def lake(empty_lake: Lake) -> Lake:
    fill(empty_lake)
    return empty_lake


@pytest.fixture
def gated(lake: Lake) -> Lake:
    """The lake, whose gold table has a suite."""
    file = lake.pipeline.file
    file.write_text(
        file.read_text().replace("    allowed_", "    expectations: sane\n    allowed_")
    )
    folder = project_folder(file) / "expectations"
    folder.mkdir()
    (folder / "sane.yml").write_text("expectations: [{id: sane, expect: events > 0}]")
    lake.pipeline = load(file)
    return lake


@pytest.fixture
def of_lake(empty_lake: Lake) -> tuple[str, str, str]:
    """PIPELINE and --root of the tiny lake. The root is the default one where ``ask`` runs."""
    root = Path(empty_lake.layout.storage.root).parent
    return str(empty_lake.pipeline.file), "--root", str(root)
