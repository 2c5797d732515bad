"""A log entry that is not what was written is refused, and so is a set of live files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.lake.storage.files import Storage
from headgate.lake.tables.checksum import NO_FILES, digest_after, digest_of
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import entry_path, read_commit
from tests.unit.lake.tables.conftest import Open, file, next_batch

NOON = datetime(2026, 5, 4, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.slow
def test_no_flipped_byte_of_an_entry_changes_what_it_says(open_table: Open, tmp_path: Path) -> None:
    table = open_table()
    first = file("a", (NOON, NOON))
    next_batch(table, first)
    next_batch(table, file("b b%", (NOON, NOON)), remove=(first,))
    storage = Storage(str(tmp_path / "gold/t"))
    path = tmp_path / "gold/t" / entry_path(2)
    written, said = path.read_bytes(), read_commit(storage, 2)
    refused = 0
    for place in range(len(written)):
        flipped = bytearray(written)
        flipped[place] ^= 0x04
        path.write_bytes(flipped)
        try:
            assert read_commit(storage, 2) == said, bytes(flipped[place - 20 : place + 20])
        except LogGapError:
            refused += 1
    assert refused > 0.6 * len(written)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_cut_entry_is_refused(open_table: Open, tmp_path: Path, kept: float) -> None:
    next_batch(open_table(), file("a"))
    path = tmp_path / "gold/t" / entry_path(1)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(LogGapError, match=r"damaged"):
        read_commit(Storage(str(tmp_path / "gold/t")), 1)


def test_each_commit_says_which_files_are_live_after_it(open_table: Open) -> None:
    table = open_table()
    assert table.refresh().files == NO_FILES
    first, second = file("a", (NOON, NOON)), file("b", final=True)
    next_batch(table, first, second)
    assert table.refresh().files == digest_of([second, first])
    next_batch(table, file("c"), remove=(first,))
    state = table.refresh()
    assert state.files == digest_of(live_files(table.handle)) == digest_of([second, file("c")])


def test_a_checkpoint_gives_the_same_files_as_the_log(open_table: Open) -> None:
    """The checkpoint keeps bounds to the microsecond, because a dashboard skips files by them."""
    table = open_table()
    next_batch(table, file("a", (NOON, NOON)), file("with space%"))
    table.handle.create_checkpoint()
    again = open_table()
    state = again.refresh()
    assert digest_of(live_files(again.handle)) == state.files
    again.require_intact()


def test_a_checkpoint_with_other_files_is_refused(open_table: Open, tmp_path: Path) -> None:
    table = open_table()
    next_batch(table, file("a"))
    # An entry loses a line; only the checkpoint after it is still read.
    next_batch(table, file("b"))
    path = tmp_path / "gold/t" / entry_path(1)
    lines = [line for line in path.read_text().splitlines() if '"add"' not in line]
    path.write_text("\n".join(lines))
    again = open_table()
    again.refresh()
    with pytest.raises(LogGapError, match="the files in the log differ"):
        again.require_intact()


def test_columns_that_were_renamed_in_the_log_are_refused(open_table: Open, tmp_path: Path) -> None:
    """The columns in the first entry differ from those in the checksums of commits."""
    next_batch(open_table(), file("a"))
    open_table().require_intact()
    path = tmp_path / "gold/t" / entry_path(0)
    path.write_text(path.read_text().replace('\\"id\\"', '\\"ie\\"'))
    with pytest.raises(LogGapError, match="the columns in the log differ"):
        open_table().require_intact()


def test_order_does_not_matter_and_what_goes_is_gone() -> None:
    files = [file("a"), file("b"), file("c", final=True)]
    assert digest_of(files) == digest_of(reversed(files))
    assert digest_after(digest_of(files), (), files) == NO_FILES
    assert json.loads(f'"{digest_of(files)}"') != digest_of(files[:2])
