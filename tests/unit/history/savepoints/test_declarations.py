"""The declarations that are kept with a pipeline's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.history.savepoints.declarations import (
    keep_declaration,
    kept_declaration,
    kept_declarations,
)
from headgate.lake.storage.layout import Layout
from tests.unit.insight.ledger.conftest import DECLARATION

SINK = """
publish:
  rows:
    from: gold.per_minute
    postgres: {url: 'postgresql://ann:${env:OLD_PW}@db.internal/shop', table: sales}
  whole:
    from: quarantine.events
    kafka: {servers: 'localhost:9092', topic: bad, options: {ssl.key.password: '${env:OLD_PW}'}}
"""


def test_the_one_that_was_deployed_last_is_the_last(tmp_path: Path) -> None:
    """Also if the same one was deployed before."""
    file, layout = tmp_path / "tiny.yml", Layout.of(str(tmp_path / "lake"), "tiny")
    made = []
    for minutes in range(1, 5):
        file.write_text(DECLARATION.replace("1 minute}", f"{minutes} minutes}}"))
        made.append(load(file))
        keep_declaration(layout, made[-1])
    for pipeline in made:
        keep_declaration(layout, pipeline)
        assert [*kept_declarations(layout)][-1].digest == pipeline.digest


def test_one_is_found_after_the_variable_of_its_password_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION + SINK)
    monkeypatch.setenv("OLD_PW", "open sesame")
    pipeline = load(file)
    layout = Layout.of(str(tmp_path / "lake"), pipeline.name)
    keep_declaration(layout, pipeline)
    monkeypatch.delenv("OLD_PW")
    (found,) = kept_declarations(layout)
    assert (found.digest, found.definitions) == (pipeline.digest, pipeline.definitions)
    with pytest.raises(DeclarationError, match="OLD_PW is not set"):
        kept_declaration(layout, pipeline.digest, needs_secrets=True)
