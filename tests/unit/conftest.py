"""Unit tests start no JVM: what the rules of expressions do not cover is not checked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headgate.declaration.expressions import spark
from headgate.declaration.types import DataType
from headgate.lake.storage.layout import Layout
from tests.support import any_counts as counts

NOT_COVERED = {"wrong": "", "unparsed": True}
"""The analysis of Spark that leads to the message of these rules."""


@pytest.fixture(autouse=True)
def _no_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(text: str, columns: Mapping[str, DataType]) -> Mapping[str, object]:
        return NOT_COVERED

    monkeypatch.setattr(spark, "analyse", answer)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The folder of a pipeline without any document."""
    return Layout.of(str(tmp_path), "tiny")


@pytest.fixture(autouse=True)
def any_counts() -> Iterator[None]:
    """Most files of unit tests do not exist. Folders whose tests commit real files replace this
    fixture."""
    with counts.any_counts():
        yield
