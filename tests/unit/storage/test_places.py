"""Addresses of this machine and of object stores, and that nobody else takes one apart."""

from __future__ import annotations

from pathlib import Path

import pytest

import headgate
from headgate.storage.places import absolute, is_uri, parent, split_scheme

ENGINE = Path(headgate.__file__).parent
ELSEWHERE = {
    Path("storage/places.py"),
    Path("standalone/settings.py"),  # the address of a database
    Path("sinks/postgres/url.py"),  # the same
}


def test_a_path_becomes_absolute_and_a_uri_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("lake") == str(tmp_path / "lake")
    assert absolute("s3://bucket/lake/") == "s3://bucket/lake"
    assert (is_uri("s3://bucket/lake"), is_uri("/srv/lake")) == (True, False)


def test_parts() -> None:
    assert parent("s3://bucket/lake/shop") == "s3://bucket/lake"
    assert split_scheme("s3://bucket/lake") == ("s3://", "bucket/lake")
    assert split_scheme("/srv/lake") == ("", "/srv/lake")


def test_no_other_module_takes_an_address_apart() -> None:
    found = {
        path.relative_to(ENGINE)
        for path in ENGINE.rglob("*.py")
        if '"://"' in path.read_text() or "'://'" in path.read_text()
    }
    assert found == ELSEWHERE
