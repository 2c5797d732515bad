"""What a person is told about files that have changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.commands import rendered
from headgate.flow.sources.files.changes import FileChange, changed_files_error
from headgate.flow.sources.files.log import LoggedFile
from headgate.lake.storage.files import Stat, Storage
from tests.support.lake import declared
from tests.support.several_sources import TWO

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def gone(sequence: int) -> FileChange:
    return FileChange(LoggedFile(sequence, f"{sequence}.json", 1, NOON, NOON), None)


def touched(sequence: int) -> FileChange:
    now = Stat(f"{sequence}.json", 1, NOON + timedelta(hours=1))
    return replace(gone(sequence), now=now)


@pytest.mark.parametrize(
    ("changes", "commands"),
    [
        ([gone(7)], ["files skip PIPELINE{of} 7"]),
        ([touched(7)], ["files accept PIPELINE{of}", "files skip PIPELINE{of} 7"]),
        (
            [gone(7), gone(8)],
            ["files list PIPELINE{of} --changed", "files skip PIPELINE{of} --changed"],
        ),
    ],
)
def test_the_commands_name_one_of_several_sources(
    changes: list[FileChange], commands: list[str], tmp_path: Path
) -> None:
    """Because each source numbers its own files."""
    orders = declared(tmp_path, TWO).sources["orders"]
    assert not orders.is_only
    for source, of in ((orders, " --source orders"), (replace(orders, is_only=True), "")):
        remedy = rendered(changed_files_error(Storage("landing"), changes, source).remedy)
        for command in commands:
            assert f"headgate {command.format(of=of)}" in remedy
