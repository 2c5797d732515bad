"""The ids seen so far, by event time: what duplicates are looked up in.

Held in memory by buckets of event time. A bucket that is not in memory is read from bronze when a
record of its time comes by, so memory bounds speed, never correctness. Ids are compared by two
independent 64-bit hashes: among 10^10 events the chance that any two different ids are taken for
one is about 10^-19.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.bronze.id_index import Flags, IdIndex, Ints
from headgate.bronze.matching import Matching
from headgate.spec.model import OnDiffering

Span = tuple[int, int]
"""Event times [first, last] in microseconds."""

SEEN = pa.schema(
    [
        ("partition", pa.int32()),
        ("time", pa.int64()),
        ("hash_a", pa.int64()),
        ("hash_b", pa.int64()),
        ("content", pa.int64()),
    ]
)
ROWS_IN_MEMORY = 6_000_000  # about 350 MB
_FORGOTTEN = 0.5  # of the bound, at a time: forgetting costs what is kept

_BESIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seen")

_VALUES = ("time", "partition", "hash_b", "content")
"""What the index holds of a row, under its hash_a."""


class Seen:
    """``within`` in microseconds. ``load`` reads the rows (``SEEN``) of some spans from bronze;
    ``newest`` is the greatest event time bronze held when this was made (None: nothing)."""

    def __init__(
        self,
        within: int,
        differing: OnDiffering,
        load: Callable[[Sequence[Span]], pa.Table],
        newest: int | None,
        rows_in_memory: int = ROWS_IN_MEMORY,
    ) -> None:
        self._width = max(within, 1)
        self._differing = differing
        self._load = load
        self._newest_bucket = None if newest is None else newest // self._width
        self._rows_in_memory = rows_in_memory
        self._used: dict[int, int] = {}
        self._sizes: Counter[int] = Counter()
        self._batch = 0
        self._index = IdIndex(len(_VALUES))
        self._matching = Matching(within)
        self._adding: Future[None] | None = None

    def find(self, ordered: pa.Table) -> tuple[Flags, Flags]:
        """Which records of a batch in log order are duplicates, and which differ from all
        earlier records of their id (those are duplicates only where the declaration says warn).
        Raises what the last ``add`` came to, if it failed."""
        self._await_added()
        fresh = _with_id_and_time(ordered)
        self._need(np.unique(_ints(fresh, "time") // self._width))
        matched = np.zeros(len(ordered), np.bool_)
        same = np.zeros(len(ordered), np.bool_)
        matches = self._match(fresh)
        rows = matches.column("i").to_numpy()
        matched[rows] = True
        same[rows] = matches.column("same").to_numpy(zero_copy_only=False)
        differing = matched & ~same
        return (matched if self._differing == "warn" else matched & same), differing

    def _match(self, fresh: pa.Table) -> pa.Table:
        """``i`` of the records that have an earlier one within reach, and whether one of those
        has the ``same`` content."""
        hashes, counts = np.unique(_ints(fresh, "hash_a"), return_counts=True)
        known, values = self._index.find(hashes)
        twice = pc.unique(pa.array(np.concatenate([hashes[counts > 1], known])))
        columns = {"hash_a": known} | dict(zip(_VALUES, values, strict=True))
        few = fresh.filter(pc.is_in(fresh.column("hash_a"), value_set=twice))
        return self._matching.matches(few, pa.table(columns))

    def add(self, ordered: pa.Table) -> None:
        """Remember a batch once bronze holds it, then forget what is over the memory bound: while
        silver and gold go on. Only the next look waits for it."""
        self._await_added()
        self._adding = _BESIDE.submit(self._add, ordered)

    def _await_added(self) -> None:
        if self._adding is not None:
            self._adding.result()

    def _add(self, ordered: pa.Table) -> None:
        fresh = _with_id_and_time(ordered)
        if fresh.num_rows:
            newest = int(pc.max(fresh.column("time")).as_py()) // self._width
            self._newest_bucket = max(self._newest_bucket or newest, newest)
        self._insert(fresh)
        self._evict()

    def _need(self, buckets: Ints) -> None:
        self._batch += 1
        needed = {int(b) + d for b in buckets for d in (-1, 0, 1)}
        missing = sorted(b for b in needed if b not in self._used)
        # Nothing in bronze is newer than the newest bucket, so those ahead need no reading.
        held = [b for b in missing if self._newest_bucket is not None and b <= self._newest_bucket]
        if held:
            self._insert(self._load([self._span(first, last) for first, last in _runs(held)]))
        self._used.update(dict.fromkeys(needed, self._batch))

    def _insert(self, rows: pa.Table) -> None:
        self._index.add(_ints(rows, "hash_a"), [_ints(rows, name) for name in _VALUES])
        buckets, counts = np.unique(_ints(rows, "time") // self._width, return_counts=True)
        self._sizes.update(dict(zip(buckets.tolist(), counts.tolist(), strict=True)))

    def _span(self, first: int, last: int) -> Span:
        return first * self._width, (last + 1) * self._width - 1

    def _evict(self) -> None:
        """Forget buckets that were not used for longest. A batch's own are never among them."""
        if len(self._index) <= self._rows_in_memory:
            return
        over = len(self._index) - (1 - _FORGOTTEN) * self._rows_in_memory
        forgotten = []
        for bucket in sorted(self._used, key=lambda b: (self._used[b], b)):
            if over <= 0 or self._used[bucket] == self._batch:
                break
            over -= self._sizes.pop(bucket, 0)
            del self._used[bucket]
            forgotten.append(bucket)
        if forgotten:
            held = self._index.column(_VALUES.index("time")) // self._width
            self._index.keep(~np.isin(held, forgotten))


def _with_id_and_time(ordered: pa.Table) -> pa.Table:
    """The rows that can have a duplicate: ``SEEN``, and as ``i`` their place in the batch."""
    usable = pc.and_(pc.is_valid(ordered.column("time")), pc.is_valid(ordered.column("hash_a")))
    numbered = ordered.select(SEEN.names).add_column(0, "i", pa.array(np.arange(len(ordered))))
    return numbered.filter(usable)


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
