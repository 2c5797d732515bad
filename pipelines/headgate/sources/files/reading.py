"""Reads recorded files of one source."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.sources.files.declared import FilesSource
from headgate.sources.files.log import LoggedFile
from headgate.sources.files.parts import parts
from headgate.sources.records import PartedRecords, Records
from headgate.storage.files import Storage


class FilesReader:
    """The records of files in a landing folder."""

    def __init__(self, landing: Storage, source: FilesSource) -> None:
        self._landing, self._source = landing, source

    def read(self, files: Sequence[LoggedFile]) -> Records:
        return PartedRecords(parts(self._landing, self._source, files))
