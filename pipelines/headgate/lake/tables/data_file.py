"""A Parquet file of a table, as its log describes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from deltalake.transaction import AddAction, RemoveAction

FINAL = "final"
"""The partition column of gold: whether a row is final."""
STATE = "_state"
"""The state of an open row: a column of gold's files that is not in the schema of gold's log, so no
reader shows it (docs/adr/0014)."""

Bounds = tuple[datetime, datetime]
_ATTEMPT = re.compile(r"data/\d+-\d+-")
_MERGED = re.compile(r"/merged-(\d+)\.parquet$")


@dataclass(frozen=True)
class DataFile:
    """``path`` is relative to the table, ``stats`` is Delta's JSON. A file that is read from a log
    equals the one that was written. ``footer`` is the checksum of the Parquet footer; only the
    commit that added the file has it."""

    path: str
    size: int
    rows: int
    stats: str
    partition: Mapping[str, str]
    footer: int | None = field(default=None, compare=False)

    @property
    def is_ours(self) -> bool:
        """Whether Headgate wrote the file, and not an OPTIMIZE of another tool."""
        return _ATTEMPT.match(self.path) is not None

    @property
    def n(self) -> int:
        """The batch id up to which the file has rows. The name of its folder contains it."""
        return int(self.path.split("/")[1].split("-")[1])

    @property
    def merged_from(self) -> int | None:
        """The lowest batch id of a file that maintenance merged, from its name; None for a file
        that a batch wrote."""
        named = _MERGED.search(self.path)
        return int(named[1]) if named else None

    def is_across(self, n: int) -> bool:
        """Whether it is a merged file with rows of batches up to ``n`` and of later ones."""
        return self.merged_from is not None and self.merged_from <= n < self.n

    @property
    def is_final(self) -> bool:
        return self.partition.get(FINAL) == "true"

    def added(self, at_millis: int, *, new_rows: bool = True) -> AddAction:
        return AddAction(
            self.path, self.size, dict(self.partition), at_millis, new_rows, self.stats
        )

    def removed(self, at_millis: int, *, rows_gone: bool = True) -> RemoveAction:
        return RemoveAction(self.path, rows_gone, at_millis, self.size, dict(self.partition))


def merged_name(lowest: int) -> str:
    """The name of a merged file whose rows begin with batch id ``lowest``."""
    return f"merged-{lowest}.parquet"


def statistics(rows: int, column: str, bounds: Bounds | None) -> str:
    """Delta's statistics: the number of rows, and the least and greatest time of one column."""
    content: dict[str, object] = {"numRecords": rows}
    if bounds is not None:
        content["minValues"] = {column: _text(bounds[0])}
        content["maxValues"] = {column: _text(bounds[1])}
    return json.dumps(content)


def _text(time: datetime) -> str:
    # Not strftime: it writes the year 1 without leading zeros, and no reader accepts that.
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
