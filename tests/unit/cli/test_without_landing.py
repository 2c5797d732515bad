"""What is printed about landing files if a pipeline reads Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.driver.refusing import require_input
from headgate.lake.storage.layout import Layout
from tests.unit.cli.conftest import Ask
from tests.unit.declaration.conftest import KAFKA


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yml"
    file.write_text(KAFKA, encoding="utf-8")
    return file


def test_a_source_without_a_folder_gives_no_remark(shop: Path) -> None:
    declared = load(shop)
    assert require_input(declared, Layout.of(str(shop.parent), declared.name)) == ()


@pytest.mark.parametrize("verb", [("list",), ("skip", "1")])
def test_there_are_no_files(verb: tuple[str, ...], ask: Ask, shop: Path) -> None:
    name, *sequence = verb
    code, _, err = ask("files", name, shop, *sequence)
    assert code == 1
    assert "shop reads no files: its source orders is Kafka" in err
    assert f"headgate status {shop}" in err
