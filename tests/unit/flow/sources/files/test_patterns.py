"""Patterns of files that a person types for a load of history."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.loading import matching, require_elsewhere


def test_what_is_no_pattern(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a pattern: bad character range z-a"):
        matching(f"{tmp_path}/[z-a]*")


def test_a_name_that_begins_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no such user: it is the name of a folder."""
    monkeypatch.chdir(tmp_path)
    Path("~no-such-user").mkdir()
    Path("~no-such-user/a.json").touch()
    base, found = matching("~no-such-user/*")
    assert base == f"{tmp_path}/~no-such-user"
    assert [each.path for each in found] == ["a.json"]


@pytest.mark.parametrize("base", ["/", "/data", "/data/landing", "/data/landing/old"])
def test_history_is_elsewhere_than_the_landing_folder(base: str) -> None:
    with pytest.raises(SourceError, match="reaches into the landing folder"):
        require_elsewhere(base, FilesSource("/data/landing", "json"), f"{base}/**")
    require_elsewhere("/data/landing-old", FilesSource("/data/landing", "json"), "x")
