"""The declarations that are kept with a pipeline's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.savepoints.declarations import all_kept, keep, kept
from headgate.storage.layout import Layout
from tests.unit.ledger.conftest import DECLARATION

SINK = """
publish:
  rows:
    from: gold.per_minute
    postgres: {url: 'postgresql://ann:${env:OLD_PW}@db.internal/shop', table: sales}
  whole:
    from: quarantine.events
    kafka: {servers: 'localhost:9092', topic: bad, options: {ssl.key.password: '${env:OLD_PW}'}}
"""


def test_one_is_found_after_the_variable_of_its_password_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION + SINK)
    monkeypatch.setenv("OLD_PW", "open sesame")
    pipeline = load(file)
    layout = Layout.of(str(tmp_path / "lake"), pipeline.name)
    keep(layout, pipeline)
    monkeypatch.delenv("OLD_PW")
    (found,) = all_kept(layout)
    assert (found.digest, found.definitions) == (pipeline.digest, pipeline.definitions)
    with pytest.raises(DeclarationError, match="OLD_PW is not set"):
        kept(layout, pipeline.digest, needs_secrets=True)
