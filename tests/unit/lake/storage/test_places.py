"""Addresses of this machine and of object stores; no other module takes an address apart."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

import headgate
from headgate.lake.storage.places import (
    absolute,
    is_uri,
    not_for_tables,
    overlap,
    parent,
    split_scheme,
)

ENGINE = Path(headgate.__file__).parent
ELSEWHERE = {
    Path("lake/storage/places.py"),
    Path("setup/standalone/settings.py"),  # the address of a database
    Path("flow/publish/sinks/postgres/url.py"),  # the same
}


def test_a_path_becomes_absolute_and_a_uri_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("lake") == str(tmp_path / "lake")
    assert absolute("s3://bucket/lake/") == "s3://bucket/lake"
    assert (is_uri("s3://bucket/lake"), is_uri("/srv/lake")) == (True, False)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/srv/lake", "/srv/lake", True),
        ("/srv/lake/in", "/srv/lake", True),
        ("/srv", "/srv/lake/", True),
        ("/", "/srv/lake", True),
        ("/srv/lake-in", "/srv/lake", False),
        ("/srv/lake/../in", "/srv/lake", False),
        ("file:///srv/lake/in", "/srv/lake", True),
        ("s3://bucket", "s3a://bucket/lake", True),
        ("s3://bucket/lake//in/", "s3://bucket/lake", True),
        ("s3://bucket/lakes", "s3://bucket/lake", False),
        ("gs://bucket/lake", "s3://bucket/lake", False),
        ("/bucket/lake", "s3://bucket/lake", False),
    ],
)
def test_folders_overlap_if_one_is_in_the_other(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is expected


def test_links_do_not_hide_that_folders_overlap(tmp_path: Path) -> None:
    (tmp_path / "lake/in").mkdir(parents=True)
    (tmp_path / "landing").symlink_to("lake/in")
    (tmp_path / "root").symlink_to("lake")
    assert overlap(f"{tmp_path}/landing", f"{tmp_path}/root")
    assert not overlap(f"{tmp_path}/landing/a", f"{tmp_path}/root/b")


def test_parts() -> None:
    assert parent("s3://bucket/lake/shop") == "s3://bucket/lake"
    assert split_scheme("s3://bucket/lake") == ("s3://", "bucket/lake")
    assert split_scheme("/srv/lake") == ("", "/srv/lake")


NAMES = {
    "a%41": "%41",
    "a%c3": "%c3",
    "a\\b": "\\",
    "a\nb": "\n",
    "100%": None,
    "a%zz": None,
    """ it's "a" {b}? #*,:;&+=~$(<`é[a]^|""": None,
}


@pytest.mark.parametrize(("name", "part"), NAMES.items())
def test_folders_of_which_delta_takes_the_name_for_another(
    tmp_path: Path, name: str, part: str | None
) -> None:
    folder = tmp_path / name / "table"
    assert not_for_tables(str(folder)) == part
    made = False
    with suppress(DeltaError):
        DeltaTable.create(str(folder), pa.schema([("a", pa.int64())]))
        made = DeltaTable(str(folder)).version() == 0
    assert (made and (folder / "_delta_log").is_dir()) is (part is None)


def test_a_uri_is_encoded_already() -> None:
    assert not_for_tables("s3://bucket/a%20b") is None


def test_no_other_module_takes_an_address_apart() -> None:
    found = {
        path.relative_to(ENGINE)
        for path in ENGINE.rglob("*.py")
        if '"://"' in path.read_text() or "'://'" in path.read_text()
    }
    assert found == ELSEWHERE
