"""A landing folder whose files have chosen bytes and modification times."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from tests.oracle import Arrival, SourceRecord, read_files

ARRIVED = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""When files arrive by default: half an hour after their events begin."""


@dataclass
class Landing:
    """Keeps what it wrote, in the order of writing: names must rise in that order."""

    folder: Path
    written: list[tuple[bytes, datetime]] = field(default_factory=list)

    def write(self, name: str, content: bytes, modified: datetime = ARRIVED) -> Path:
        """Write under an ignored name, then rename, as a producer should."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.part")
        hidden.write_bytes(content)
        # Whole nanoseconds: a float of seconds would lose microseconds.
        nanos = int(modified.timestamp()) * 1_000_000_000 + modified.microsecond * 1_000
        os.utime(hidden, ns=(nanos, nanos))
        hidden.rename(path)
        self.written.append((content, modified))
        return path

    def write_all(self, files: Sequence[bytes], first: int = 1) -> None:
        for number, content in enumerate(files, first):
            self.write(f"{number:05d}.json", content)

    def records(self) -> list[SourceRecord]:
        """The oracle's view of the JSON-lines files written so far."""
        return read_files(self.written)


def loaded(
    archive: Landing, after: Mapping[int, int], number: int = 1, happenings: int = 0
) -> list[SourceRecord]:
    """The records of an archive, which load ``number`` has loaded after the offsets ``after`` of
    the source and after the first ``happenings`` happenings."""
    arrival = Arrival(number, after, happenings)
    return [
        replace(record, offset=record.offset - (number << 56), arrival=arrival)
        for record in archive.records()
    ]


def lines(values: Iterable[bytes]) -> bytes:
    return b"".join(value + b"\n" for value in values)


def split(values: Sequence[bytes], files: int) -> list[bytes]:
    """``values`` as JSON-lines files of about equal length, in order."""
    ends = [len(values) * k // files for k in range(files + 1)]
    return [lines(values[a:b]) for a, b in pairwise(ends)]
