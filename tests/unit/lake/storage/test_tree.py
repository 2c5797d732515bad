"""The files of a folder, each once: links of all kinds, and names that are not text."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.machine_faults import machine_fault
from headgate.lake.storage.files import Stat, Storage
from headgate.lake.storage.tree import Tree, tree_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A landing folder with one file in it and one in a folder, and a folder beside it."""
    for name in ("in/a.json", "in/day/b.json", "else/c.json", "else/deep/d.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    return tmp_path / "in"


def tree(folder: Path) -> Tree:
    return tree_of(Storage(str(folder)), (".", "_"))


def listed(folder: Path, known: Collection[str] = ()) -> list[str]:
    return sorted(stat.path for stat in tree(folder).named(known.__contains__))


def link(path: Path, target: str | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def test_a_folder_has_the_files_of_its_folders(folder: Path) -> None:
    assert listed(folder) == ["a.json", "day/b.json"]
    assert listed(folder / "none") == []
    (found,) = (each for each in tree(folder).files if each.path == "day/b.json")
    assert found == Storage(str(folder)).stat("day/b.json")


@pytest.mark.parametrize("target", [".", "..", "../in", "../in/day", "day", "/", "loop", "none"])
def test_a_link_to_what_is_listed_or_above_it_adds_no_file(folder: Path, target: str) -> None:
    link(folder / "loop", target)
    link(folder / "day/again", "..")
    assert listed(folder) == ["a.json", "day/b.json"]


def test_a_folder_that_is_a_link_is_listed_itself(folder: Path) -> None:
    link(folder.parent / "landing", "in")
    link(folder / "back", "../landing")
    assert listed(folder.parent / "landing") == ["a.json", "day/b.json"]


def test_a_folder_that_several_links_lead_to_is_listed_once(folder: Path) -> None:
    link(folder / "y", "../else")
    assert listed(folder) == ["a.json", "day/b.json", "y/c.json", "y/deep/d.json"]
    link(folder / "x", "../else/deep")
    link(folder / "z", "y")
    link(folder.parent / "else/deep/round", "..")
    assert listed(folder) == ["a.json", "day/b.json", "x/d.json", "y/c.json"]


def test_a_file_keeps_the_name_under_which_it_is_known(folder: Path) -> None:
    """New links, or folders that are moved, must not make known files new ones."""
    link(folder / "y", "../else")
    known = listed(folder)
    link(folder / "x", "../else/deep")
    link(folder / "b", "../else")
    assert listed(folder, known) == known
    (folder.parent / "else").rename(folder / "else")
    for name in ("y", "b", "x"):
        (folder / name).unlink()
        link(folder / name, "else/deep" if name == "x" else "else")
    assert listed(folder, known) == known
    assert "else/c.json" in listed(folder)


def test_a_file_that_several_names_lead_to_is_listed_once(folder: Path) -> None:
    link(folder / "0.json", "a.json")
    link(folder / "1.json", "../else/c.json")
    link(folder / "2.json", "../else/c.json")
    assert listed(folder) == ["1.json", "a.json", "day/b.json"]
    assert listed(folder, ["2.json", "0.json"]) == ["0.json", "2.json", "day/b.json"]
    link(folder / "3", "../else")
    assert listed(folder) == ["3/c.json", "3/deep/d.json", "a.json", "day/b.json"]
    assert "1.json" in listed(folder, ["1.json"])
    assert "3/c.json" not in listed(folder, ["1.json"])


def test_a_hard_link_is_a_second_name(folder: Path) -> None:
    os.link(folder / "a.json", folder / "z.json")
    os.link(folder.parent / "else/c.json", folder / "c.json")
    link(folder / "0.json", "z.json")
    assert listed(folder) == ["0.json", "c.json", "day/b.json"]
    assert listed(folder, ["z.json"]) == ["c.json", "day/b.json", "z.json"]
    (folder / "0.json").unlink()
    (folder / "a.json").unlink()
    assert listed(folder) == ["c.json", "day/b.json", "z.json"]


def test_a_hard_link_keeps_the_name_that_a_link_to_its_folder_gave_it(folder: Path) -> None:
    link(folder / "y", "../else")
    known = listed(folder)
    os.link(folder.parent / "else/c.json", folder / "0.json")
    link(folder / "b", "../else")
    assert listed(folder, known) == known


def test_ignored_names_are_not_seen_but_a_link_may_lead_to_them(folder: Path) -> None:
    """Such as a volume of Kubernetes, whose files are links into a folder that is replaced."""
    for name in ("._a", "_day/b.json", ".now/c.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}\n")
    link(folder / "c.json", ".now/c.json")
    link(folder / "_d.json", "a.json")
    assert listed(folder) == ["a.json", "c.json", "day/b.json"]


def test_ignored_names_of_an_object_store_are_not_seen() -> None:
    class Bucket(Storage):
        is_local = False

        def list(self, path: str = "", *, recursive: bool = False) -> Iterator[Stat]:
            names = (".a", "_a", "day/.a", "_day/a", "a/_day/a", "day/a")
            return (Stat(name, 1, datetime(2026, 5, 4, tzinfo=UTC)) for name in names)

    assert [each.path for each in tree_of(Bucket("s3://bucket"), (".", "_")).files] == ["day/a"]


def test_names_that_are_not_utf8_are_named_unless_they_are_ignored(folder: Path) -> None:
    for name in (b"x\xff.json", b"day/\xe4/y.json", b".\xff", b"_\xff/z.json"):
        path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.touch()
    link(Path(os.fsdecode(os.fsencode(folder) + b"/l\xff")), "../else")
    link(folder / "read.json", os.fsdecode(b"x\xff.json"))
    assert listed(folder) == ["a.json", "day/b.json", "read.json"]
    assert sorted(tree(folder).unnamed) == [r"day/\xe4/", r"l\xff/", r"x\xff.json"]


def test_a_folder_that_may_not_be_read_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are not left out."""
    allowed = os.scandir

    def scandir(path: bytes) -> object:
        if path.endswith(b"/day"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return allowed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError) as refused:
        tree(folder)
    fault = machine_fault(refused.value)
    assert fault is not None
    assert fault.message == f"Permission denied: {folder}/day"


def test_a_link_to_what_may_not_be_read_is_not_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link(folder / "to", "../else")
    allowed = os.stat

    def stat(path: bytes, *args: Any, **options: Any) -> os.stat_result:
        if os.fsencode(path).endswith(b"/else"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return allowed(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(PermissionError, match="Permission denied") as refused:
        tree(folder)
    fault = machine_fault(refused.value)
    assert fault is not None
    assert fault.message == f"Permission denied: {folder.parent}/else"


def test_what_is_no_file_is_not_listed(folder: Path) -> None:
    os.mkfifo(folder / "pipe.json")
    link(folder / "device.json", "/dev/null")
    assert listed(folder) == ["a.json", "day/b.json"]
