"""The docs name modules of the package, and what is in them. Both must be there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate

PACKAGE = Path(headgate.__file__).parent
CLONE = PACKAGE.parents[1]
NAMED = re.compile(r"`([\w/]+/\w+\.py)(?:: ([\w.]+))?[^`]*`")
TEST = re.compile(r"`(tests/[\w/]+)`")
PAGES = [*CLONE.glob("docs/**/*.md"), CLONE / "CONTRIBUTING.md", CLONE / "README.md"]


def _named() -> Iterator[tuple[str, str, str | None]]:
    for page in PAGES:
        text = page.read_text("utf-8")
        for path, name in NAMED.findall(text):
            inside = f"pipelines/headgate/{path}"
            place = path if (CLONE / path).exists() else inside
            if "NAME" not in path:
                yield page.name, place, name.partition(".")[0] or None
        for path in TEST.findall(text):
            yield page.name, path, None


@pytest.mark.parametrize(("page", "path", "name"), sorted(set(_named()), key=str))
def test_what_the_docs_name_is_there(page: str, path: str, name: str | None) -> None:
    assert (CLONE / path).exists(), page
    if name is not None:
        text = (CLONE / path).read_text("utf-8")
        assert re.search(rf"^(class|def|    def) {name}\b|^{name}\b", text, re.M), page
