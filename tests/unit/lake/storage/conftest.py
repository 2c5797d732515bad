"""The folder of a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.lake.storage.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path), "tiny")
