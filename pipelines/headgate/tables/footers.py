"""The checksums of a table's footers, for a stage that asks for them again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from headgate.tables.data_file import DataFile
from headgate.tables.errors import LogGapError
from headgate.tables.history import lineage
from headgate.tables.log import Commit
from headgate.tables.table import Table


class Footers:
    """Reads each entry of the log once, back to the oldest file that was ever asked for."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[str, int] = {}
        self._newest = -1
        self._older: Iterator[Commit] = iter(())

    def of(self, files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """Files of the table as its handle has it, with the checksums of their footers as far as
        the log still says them."""
        with suppress(LogGapError):
            self._read_newer()
            missing = {file.path for file in files} - self._known.keys()
            while missing and (commit := next(self._older, None)) is not None:
                self._known |= commit.state.footers
                missing -= commit.state.footers.keys()
        return tuple(replace(file, footer=self._known.get(file.path)) for file in files)

    def _read_newer(self) -> None:
        newest = self._table.handle.version()
        commits = lineage(self._table, newest)
        if self._newest < 0:
            self._older = commits
        elif newest > self._newest:
            for commit in commits:
                if commit.version <= self._newest:
                    break
                self._known |= commit.state.footers
        self._newest = newest
