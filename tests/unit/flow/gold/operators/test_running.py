"""What has no meaning for a table with one row per key over all time is refused."""

from __future__ import annotations

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.history.backfill.compatibility import require_windows
from headgate.history.backfill.errors import OtherDeclarationError
from tests.support.operators import declared

PIPELINE = declared("running: true")


def test_a_backfill_of_a_range() -> None:
    with pytest.raises(OtherDeclarationError, match="has no windows"):
        require_windows(PIPELINE.gold["results"])


def test_lateness() -> None:
    with pytest.raises(DeclarationError, match="has no meaning with 'running'"):
        declared("running: true\n    allowed_lateness: 1 s")


def test_a_publication_of_final_rows() -> None:
    text = PIPELINE.text + (
        "publish: {sites: {from: gold.results, kafka: {servers: 'localhost:1', topic: t}}}\n"
    )
    with pytest.raises(DeclarationError, match=r"no row of gold.results is ever final"):
        load(PIPELINE.file, text=text)
    load(PIPELINE.file, text=text.replace("results, kafka", "results, when: update, kafka"))
