"""The index of earlier ids by event time, in which duplicates are found.

Only a valid record makes later records with its id duplicates. Invalid records are held in a second
index, so that corrected copies are counted.

Ids are held in memory in buckets of event time. If a record needs a bucket that is not in memory,
it is read from bronze: less memory costs speed, not correctness. The buckets within ``within`` of a
batch's records are all in memory, however many ids they have. Ids are compared by two independent
64-bit hashes: among 10^10 events the chance that any two different ids are taken for one is about
10^-19.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.model import OnDiffering
from headgate.flow.bronze.duplicate_matcher import DuplicateMatcher
from headgate.flow.bronze.id_index import Flags, IdIndex, Ints
from headgate.flow.bronze.reasons import Reason
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import sound_batches
from headgate.lake.tables.data_file import DataFile

_HASHES = "select md5_number(event_id) as id, md5_number(value) as content from given"


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """Created at first use and never closed. A thread-local connection would crash each forked
    child process: Python destroys the objects of other threads there, and DuckDB then crashes."""
    return duckdb.connect(":memory:", config={"threads": 1})


def id_hashes(rows: pa.Table) -> pa.Table:
    """The hashes by which ids and contents are compared, which are not stored: ``hash_a`` and
    ``hash_b``, the halves of the MD5 of the column ``event_id`` (null without an id), and
    ``content``, a half of the MD5 of the column ``value``, as int64.

    DuckDB's ``hash`` is not good enough: it hardly mixes blocks of eight bytes, so that ids with
    two counters in them collide.
    """
    with _database().cursor() as connection:  # for this thread alone
        connection.register("given", rows.select(["event_id", "value"]))
        found = connection.sql(_HASHES).to_arrow_table().combine_chunks()
    (hash_a, hash_b), (content, _) = (_halves(found.column(name)) for name in ("id", "content"))
    return pa.table({"hash_a": hash_a, "hash_b": hash_b, "content": content})


def _halves(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The lower and the upper 64 bits of numbers of 128 bits, which DuckDB gives as decimals."""
    array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    bits = np.frombuffer(array.buffers()[1] or b"", np.int64).reshape(-1, 2)
    bits = bits[array.offset : array.offset + len(array)]
    unknown = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(bits[:, 0], mask=unknown), pa.array(bits[:, 1], mask=unknown)


Span = tuple[int, int]
"""Event times [first, last] in microseconds."""

DEDUP_ROWS = pa.schema(
    [
        ("partition", pa.int32()),
        ("time", pa.int64()),
        ("hash_a", pa.int64()),
        ("hash_b", pa.int64()),
        ("content", pa.int64()),
        ("conforms", pa.bool_()),
    ]
)
ROWS_IN_MEMORY = 6_000_000  # about 350 MB; more only if the buckets of one batch have more
_HOUR = 3_600_000_000
_MOST_BUCKETS = 8
"""In ``within``, and at most one for each hour of it. Wider buckets hold more ids that are out of
reach of a batch. Narrower ones would be many for a batch with a wide range of event times."""
_EVICTED = 0.5  # of the bound at a time: an eviction's cost depends on the rows it keeps

_BACKGROUND = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dedup-index")

_VALUES = ("time", "partition", "hash_b", "content")
"""The columns that the index holds for a row; its key is hash_a."""


@dataclass(frozen=True)
class DuplicateFlags:
    """Which records of a batch are a ``duplicate``, and which are ``differing`` from all earlier
    copies (these are duplicates only if the declaration says ``warn``). ``corrected`` is the number
    of invalid records, of this batch or earlier ones, whose first valid copy is in this batch."""

    duplicate: Flags
    differing: Flags
    corrected: int = 0


class DedupIndex:
    """``within`` in microseconds. ``load`` reads ``DEDUP_ROWS`` of some spans from bronze;
    ``newest`` is the greatest event time in bronze when the index is created, if any."""

    def __init__(
        self,
        within: int,
        differing: OnDiffering,
        load: Callable[[Sequence[Span]], pa.Table],
        newest: int | None,
        rows_in_memory: int = ROWS_IN_MEMORY,
    ) -> None:
        self._reach = max(min(math.ceil(within / _HOUR), _MOST_BUCKETS), 1)  # in buckets
        self._width = max(math.ceil(within / self._reach), 1)
        self._differing = differing
        self._load = load
        self._newest_bucket = None if newest is None else newest // self._width
        self._rows_in_memory = rows_in_memory
        self._used: dict[int, int] = {}
        self._sizes: Counter[int] = Counter()
        self._batch = 0
        self._known = IdIndex(len(_VALUES))
        self._failed = IdIndex(len(_VALUES))
        self._matcher = DuplicateMatcher(within)
        self._adding: Future[None] | None = None

    def find(self, ordered: pa.Table) -> DuplicateFlags:
        """Find the duplicates in a batch, given in log order. Raises the error of the last
        ``add``, if it failed."""
        self._await_added()
        self._batch += 1
        fresh = _with_id_and_time(ordered)
        self._need(fresh)
        matched = np.zeros(len(ordered), np.bool_)
        same = np.zeros(len(ordered), np.bool_)
        hashes, counts = np.unique(_ints(fresh, "hash_a"), return_counts=True)
        matches = self._match(fresh, hashes, counts)
        rows = matches.column("i").to_numpy()
        matched[rows] = True
        same[rows] = matches.column("same").to_numpy(zero_copy_only=False)
        differing = matched & ~same
        duplicate = matched if self._differing == "warn" else matched & same
        return DuplicateFlags(duplicate, differing, self._corrected(fresh, hashes, matched))

    def _match(self, fresh: pa.Table, hashes: Ints, counts: Ints) -> pa.Table:
        """``i`` of the records that have an earlier copy within reach, and whether one of these
        copies has the ``same`` content."""
        earlier = _found(self._known, hashes)
        twice = np.concatenate([hashes[counts > 1], _ints(earlier, "hash_a")])
        return self._matcher.matches(_of(fresh, twice), earlier)

    def _corrected(self, fresh: pa.Table, hashes: Ints, matched: Flags) -> int:
        failed_here = pc.invert(fresh.column("conforms"))
        if not len(self._failed) and not pc.any(failed_here).as_py():
            return 0
        opens = pa.array(~matched[fresh.column("i").to_numpy()])
        failed = pa.concat_tables(
            [
                _found(self._failed, hashes),
                fresh.filter(pc.and_(failed_here, opens)).select(["hash_a", *_VALUES]),
            ]
        )
        copies = _of(fresh.append_column("opens", opens), _ints(failed, "hash_a"))
        copies = copies.filter(copies.column("conforms"))
        openers = copies.filter(copies.column("opens"))
        failed = _of(failed, _ints(openers, "hash_a"))
        if not failed.num_rows:
            return 0
        # Their first copy may be out of reach of this batch.
        self._need(failed)
        earlier = _found(self._known, np.unique(_ints(failed, "hash_a")))
        return self._matcher.corrected(failed, copies, earlier)

    def add(self, ordered: pa.Table) -> None:
        """Add a batch that bronze has committed, then evict what exceeds the memory bound. This
        runs in a thread while silver and gold run. The next ``find`` waits for it."""
        self._await_added()
        self._adding = _BACKGROUND.submit(self._add, ordered)

    def _await_added(self) -> None:
        if self._adding is not None:
            self._adding.result()

    def _add(self, ordered: pa.Table) -> None:
        fresh = _with_id_and_time(ordered)
        if fresh.num_rows:
            newest = int(pc.max(fresh.column("time")).as_py()) // self._width
            held = self._newest_bucket
            self._newest_bucket = newest if held is None else max(held, newest)
        self._insert(fresh)
        self._evict()

    def _need(self, rows: pa.Table) -> None:
        """Load every bucket that is within reach of some rows."""
        buckets = np.unique(_ints(rows, "time") // self._width)
        reach = range(-self._reach, self._reach + 1)
        needed = {b + d for b in buckets.tolist() for d in reach}
        missing = sorted(b for b in needed if b not in self._used)
        # Bronze has nothing newer than the newest bucket, so later buckets are not read.
        held = [b for b in missing if self._newest_bucket is not None and b <= self._newest_bucket]
        if held:
            self._insert(self._load([self._span(first, last) for first, last in _runs(held)]))
        self._used.update(dict.fromkeys(needed, self._batch))

    def _insert(self, rows: pa.Table) -> None:
        conforms = rows.column("conforms")
        for index, chosen in ((self._known, conforms), (self._failed, pc.invert(conforms))):
            part = rows.filter(chosen)
            index.add(_ints(part, "hash_a"), [_ints(part, name) for name in _VALUES])
        buckets, counts = np.unique(_ints(rows, "time") // self._width, return_counts=True)
        self._sizes.update(dict(zip(buckets.tolist(), counts.tolist(), strict=True)))

    def _span(self, first: int, last: int) -> Span:
        return first * self._width, (last + 1) * self._width - 1

    def _evict(self) -> None:
        """Evict the least recently used buckets, never those of the current batch."""
        held = len(self._known) + len(self._failed)
        if held <= self._rows_in_memory:
            return
        over = held - (1 - _EVICTED) * self._rows_in_memory
        evicted = []
        for bucket in sorted(self._used, key=lambda b: (self._used[b], b)):
            if over <= 0 or self._used[bucket] == self._batch:
                break
            over -= self._sizes.pop(bucket, 0)
            del self._used[bucket]
            evicted.append(bucket)
        for index in (self._known, self._failed) if evicted else ():
            buckets = index.column(_VALUES.index("time")) // self._width
            index.keep(~np.isin(buckets, evicted))


def _with_id_and_time(ordered: pa.Table) -> pa.Table:
    """The rows with an id and a time: ``DEDUP_ROWS``, and ``i``, the position in the batch."""
    usable = pc.and_(pc.is_valid(ordered.column("time")), pc.is_valid(ordered.column("hash_a")))
    rows = ordered.select(["hash_a", *_VALUES, "conforms"])
    return rows.append_column("i", pa.array(np.arange(len(ordered)))).filter(usable)


def _found(index: IdIndex, hashes: Ints) -> pa.Table:
    found, values = index.find(hashes)
    columns = dict(zip(_VALUES, values, strict=True))
    return pa.table(
        {"hash_a": found, **columns, "partition": columns["partition"].astype(np.int32)}
    )


def _of(rows: pa.Table, hashes: Ints) -> pa.Table:
    """The rows that have one of ``id_hashes``."""
    return rows.filter(pc.is_in(rows.column("hash_a"), value_set=pa.array(np.unique(hashes))))


def _ints(rows: pa.Table, column: str) -> Ints:
    return np.asarray(rows.column(column).to_numpy(), np.int64)


def _runs(buckets: Iterable[int]) -> list[tuple[int, int]]:
    """Neighbouring numbers as ranges: 1 2 3 7 -> (1, 3), (7, 7)."""
    runs: list[tuple[int, int]] = []
    for bucket in buckets:
        if runs and runs[-1][1] == bucket - 1:
            runs[-1] = (runs[-1][0], bucket)
        else:
            runs.append((bucket, bucket))
    return runs


_COLUMNS = ["partition", "event_time", "event_id", "value", "reason"]


def dedup_rows(storage: Storage, files: Iterable[DataFile], spans: Sequence[Span]) -> pa.Table:
    """``DEDUP_ROWS`` of some files whose event times lie in ``spans``, which are disjoint and rise.
    A differing duplicate counts as valid. Raises DamagedFileError."""
    firsts, lasts = np.array(spans, np.int64).reshape(-1, 2).T
    found = [DEDUP_ROWS.empty_table()]
    for file in files:
        for batch in sound_batches(storage, file, _COLUMNS):
            rows = pa.Table.from_batches([batch])
            found.append(_dedup_rows(rows.filter(_is_wanted(rows, firsts, lasts))))
    return pa.concat_tables(found)


def _is_wanted(rows: pa.Table, firsts: Ints, lasts: Ints) -> pa.ChunkedArray:
    """Searches the sorted ends: a batch may need thousands of spans, and a file has many rows."""
    time = rows.column("event_time").cast(pa.int64())
    at = pc.fill_null(time, 0).to_numpy()
    # Within a span, one more has begun than has ended.
    within = np.searchsorted(firsts, at, "right") > np.searchsorted(lasts, at, "left")
    # Each record with an id and a time in the future has this reason.
    is_future = pc.equal(rows.column("reason"), Reason.FUTURE.value)
    counts = pc.invert(pc.fill_null(is_future, False))
    known = pc.and_(pc.is_valid(time), pc.is_valid(rows.column("event_id")))
    return pc.and_(pc.and_(pa.array(within), counts), known)


def _dedup_rows(rows: pa.Table) -> pa.Table:
    partition, hashed = rows.column("partition"), id_hashes(rows)
    # A copy belongs to the log of the record that it corrects.
    log = pc.if_else(pc.less(partition, 0), pc.bit_wise_not(partition), partition)
    reason = rows.column("reason")
    differing = pc.fill_null(pc.equal(reason, Reason.DIFFERING_DUPLICATE.value), False)
    columns = {
        "partition": log,
        "time": rows.column("event_time").cast(pa.int64()),
        **{name: hashed.column(name) for name in hashed.column_names},
        "conforms": pc.or_(pc.is_null(reason), differing),
    }
    return pa.table([columns[f.name] for f in DEDUP_ROWS], schema=DEDUP_ROWS)
