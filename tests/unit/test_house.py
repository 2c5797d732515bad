"""The house style, as far as no linter checks it (CONTRIBUTING.md)."""

from __future__ import annotations

from pathlib import Path

import headgate

PACKAGE = Path(headgate.__file__).parent
MOST_LINES = 300


def test_no_file_is_long() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert len(lines) > 500
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
