"""Landing files and folders with names that a URL would encode."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import parts_of_files
from headgate.lake.storage.files import Storage
from headgate.lake.storage.tree import tree_of
from tests.support.landing import ARRIVED

FOLDERS = ["in%41", r"in\x", """it's "in" [a]{b}* #1"""]
NAMES = [
    *(
        "a%41.json",
        r"a\b.json",
        "a:b?.json",
        "a [1]{2}*#.json",
        " a ",
        "it's",
        '"',
        "$HOME `x`;&|<>",
    ),
    *("a\nb", "a\tb", "\x01\x1b[31m", "\x7f", "\u202egpj.exe", "\U0001f600", "-rf", "~"),
    *("\u00e9", "e\u0301", "\u0130", "x" * 255),  # the first two look the same
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_name_is_read_as_it_is(tmp_path: Path, folder: str) -> None:
    landing = Storage(str(tmp_path / folder))
    (tmp_path / folder).mkdir()
    for name in NAMES:
        (tmp_path / folder / name).write_text(f'{{"name": "{len(name)}"}}\n')
    listed = {stat.path: stat.size for stat in tree_of(landing, (".", "_")).files}
    assert listed.keys() == {*NAMES}
    assert {stat.path for stat in landing.list()} == {*NAMES}
    files = [LoggedFile(1, path, size, ARRIVED, ARRIVED) for path, size in listed.items()]
    for file in files:
        (part,) = parts_of_files(landing, FilesSource(landing.root, "json"), [file])
        (rows,) = part.blocks()
        assert landing.stat(file.path)
        assert rows["file"].to_pylist() == [file.path]
        assert rows["value"].to_pylist() == [f'{{"name": "{len(file.path)}"}}'.encode()]
