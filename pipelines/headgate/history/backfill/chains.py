"""How far duplicates and replayed copies extend the part of bronze that a backfill reads.

Whether a duplicate takes the place of a rejected row depends on the copies of its id up to
``within`` away (``flow.silver.copies``), and these depend on further ones. A *chain* has duplicates
of one id, each at most ``within`` from the next. A backfill reads whole chains, whatever the rules.
A replayed copy takes the place of the record that it corrects, which may have another time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from headgate.history.backfill.selection import EVERYTHING, TimeSpan
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import sound_batches
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.live_files import files_of_batches, overlapping_files
from headgate.lake.tables.replay import corrected_time

Duplicate = tuple[str, int]
"""The id of a duplicate, and its event time in microseconds since 1970 UTC."""
FindDuplicates = Callable[[TimeSpan], Iterable[Duplicate]]
"""Returns the duplicates with event times in a span."""

MOST_STEPS = 100
"""Everything is read if a chain reaches further than this many times ``within``."""
_COLUMNS = ("event_id", "event_time", "duplicate")


def with_chains(span: TimeSpan, within: int, find: FindDuplicates) -> TimeSpan:
    """The event times of all rows that decide which rows of ``span`` are in a table with rules:
    those of each chain with a duplicate in it, and ``within`` more, where the rows may be that the
    chain repeats."""

    def mirrored(other: TimeSpan) -> Iterator[Duplicate]:
        return ((id_, -time) for id_, time in find((-other[1], -other[0])))

    first, last = _reached(span[0], within, find), _reached(-span[1], within, mirrored)
    return EVERYTHING if first is None or last is None else (first, -last)


def _reached(begin: int, within: int, find: FindDuplicates) -> int | None:
    """The earliest time that decides about duplicates at or after ``begin``; None if a chain is too
    long."""
    ends: dict[str, int] = {}  # the earliest duplicate of each chain that may go on
    for id_, time in find((begin, begin + within)):
        ends[id_] = min(time, ends.get(id_, time))
    earliest = min(ends.values(), default=begin + within)
    low = begin
    for _ in range(MOST_STEPS):
        if not ends:
            return min(begin, earliest - within)
        low -= within
        found = (each for each in find((low, low + within - 1)) if each[0] in ends)
        for id_, time in sorted(found, key=lambda each: -each[1]):
            if ends[id_] - time <= within:
                ends[id_] = time
                earliest = min(earliest, time)
        ends = {id_: time for id_, time in ends.items() if time - low < within}
    return None


class BronzeDuplicates:
    """The duplicates in a version of bronze. Each file is read once."""

    def __init__(self, storage: Storage, handle: DeltaTable) -> None:
        self._storage, self._handle = storage, handle
        self._read: dict[str, pa.Table] = {}

    def find(self, span: TimeSpan) -> Iterator[Duplicate]:
        """``FindDuplicates``. Raises DamagedFileError."""
        for file in overlapping_files(self._handle, _COLUMNS[1], [span]):
            if file.path not in self._read:
                self._read[file.path] = self._duplicates(file)
            times = self._read[file.path].column("time")
            inside = pc.and_(pc.greater_equal(times, span[0]), pc.less_equal(times, span[1]))
            found = self._read[file.path].filter(inside)
            yield from zip(*(column.to_pylist() for column in found.columns), strict=True)

    def _duplicates(self, file: DataFile) -> pa.Table:
        found = pa.schema({"id": pa.string(), "time": pa.int64()}).empty_table()
        for rows in sound_batches(self._storage, file, _COLUMNS):
            ids, times, flags = map(rows.column, _COLUMNS)
            micros = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            part = pa.table({"id": ids, "time": micros}, found.schema)
            found = pa.concat_tables([found, part.filter(flags)])
        return found


Link = tuple[int, int]
"""The event times of a replayed copy and of the rejected record that it corrects."""


def with_links(
    span: TimeSpan, links: Iterable[Link], extended: Callable[[TimeSpan], TimeSpan]
) -> list[TimeSpan]:
    """The event times of all rows that decide which rows of ``span`` are in a table with rules, as
    disjoint, rising spans. ``extended`` returns those that duplicates decide about. A copy and the
    record that it corrects decide about each other, however far apart: a correction may have
    changed the time."""
    left, spans = set(links), [extended(span)]
    while reached := {each for each in left if any(_is_in(time, spans) for time in each)}:
        left -= reached
        far = {time for each in reached for time in each if not _is_in(time, spans)}
        spans = merged_spans([*spans, *(extended((time, time)) for time in sorted(far))])
    return spans


def merged_spans(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Some spans as disjoint, rising spans."""
    found: list[TimeSpan] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def _is_in(time: int, spans: Iterable[TimeSpan]) -> bool:
    return any(first <= time <= last for first, last in spans)


def links_of(storage: Storage, handle: DeltaTable, batches: Collection[int]) -> list[Link]:
    """The links of the replays with these batch ids, in a version of bronze. Only the files of
    replays are read. Raises DamagedFileError."""
    found: list[Link] = []
    for file in files_of_batches(handle, batches):
        for rows in sound_batches(storage, file, (*_COLUMNS, "partition", "headers")):
            is_copy = pc.and_(rows.column("duplicate"), pc.less(rows.column("partition"), 0))
            copies = rows.filter(is_copy)
            times = copies.column("event_time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            corrected = map(corrected_time, copies.column("headers").to_pylist())
            for time, other in zip(times.to_pylist(), corrected, strict=True):
                if other:  # no table has rejected an invalid record
                    found.append((time, int(other)))
    return found
