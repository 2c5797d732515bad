"""What the verbs say about a pipeline with several sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources
from tests.unit.cli.conftest import Ask, last_object

two_sources = _two_sources


@pytest.fixture
def shop(two_sources: Lake) -> tuple[Path, str, Path]:
    """PIPELINE and --root of the lake of two sources."""
    return two_sources.pipeline.file, "--root", two_sources.root


def test_the_ledger_has_a_row_for_each_source(ask: Ask, shop: tuple[Path, str, Path]) -> None:
    code, out, _ = ask("ledger", *shop, "--by-id")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["shop", "read", "8", "duplicate", "1"]
    assert ["orders", "3", "0", "6", "0", "1", "0", "1", "0"] in lines
    assert ["clicks", "1", "0", "2", "0", "0", "0", "0", "0"] in lines
    assert ["seen", "clicks", "2", "0", "0", "0", "2", "0", "0"] in lines
    assert "proved by id: 6 rows of bronze.orders, 2 rows of bronze.clicks" in out
    document = last_object(ask("ledger", *shop, "--by-id", "--json")[1])
    assert document["sources"]["orders"]["n"] == 3
    assert document["by_id"]["sources"] == {"orders": {"rows": 6}, "clicks": {"rows": 2}}
