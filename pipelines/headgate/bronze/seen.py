"""The ids seen so far, by event time: what duplicates are looked up in.

Held in memory by buckets of event time, in DuckDB. A bucket that is not in memory is read from
bronze when a record of its time comes by, so memory bounds speed, never correctness. Ids are
compared by two independent 64-bit hashes: among 10^10 events the chance that any two different
ids are taken for one is about 10^-19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.spec.model import OnDiffering

Flags = npt.NDArray[np.bool_]
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
ROWS_IN_MEMORY = 6_000_000  # about 300 MB

# Earlier means: in bronze already, or further up in this batch (fresh is numbered in log order).
# One column of all that was seen is looked through, not five: most records are new.
_MATCHES = """
with maybe as materialized (
  select * from seen where hash_a in (select hash_a from fresh)
)
select i, bool_or(same) as same from (
  select n.i, s.content = n.content as same from fresh n join maybe s
    on s.partition = n.partition and s.hash_a = n.hash_a and s.hash_b = n.hash_b
   where abs(s.time - n.time) <= $within
  union all
  select n.i, s.content = n.content from fresh n join fresh s
    on s.partition = n.partition and s.hash_a = n.hash_a and s.hash_b = n.hash_b and s.i < n.i
   where abs(s.time - n.time) <= $within
) group by i
"""


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
        self._within = within
        self._width = max(within, 1)
        self._differing = differing
        self._load = load
        self._newest_bucket = None if newest is None else newest // self._width
        self._rows_in_memory = rows_in_memory
        self._used: dict[int, int] = {}
        self._batch = 0
        self._connection = duckdb.connect(":memory:")
        self._run("set threads = 2")
        self._run(
            "create table seen (partition integer, time bigint, hash_a bigint, hash_b bigint, "
            "content bigint, bucket bigint)"
        )

    def find(self, ordered: pa.Table) -> tuple[Flags, Flags]:
        """Which records of a batch in log order are duplicates, and which differ from all
        earlier records of their id (those are duplicates only where the declaration says warn)."""
        fresh = self._with_id_and_time(ordered)
        self._need(np.unique(fresh.column("time").to_numpy() // self._width))
        matches = self._connection.sql(_MATCHES, params={"within": self._within}).to_arrow_table()
        matched = np.zeros(len(ordered), np.bool_)
        same = np.zeros(len(ordered), np.bool_)
        rows = matches.column("i").to_numpy()
        matched[rows] = True
        same[rows] = matches.column("same").to_numpy(zero_copy_only=False)
        differing = matched & ~same
        return (matched if self._differing == "warn" else matched & same), differing

    def _with_id_and_time(self, ordered: pa.Table) -> pa.Table:
        numbered = ordered.append_column("i", pa.array(np.arange(len(ordered))))
        usable = numbered.filter(
            pa.compute.and_(
                pa.compute.is_valid(numbered.column("time")),
                pa.compute.is_valid(numbered.column("hash_a")),
            )
        ).select(["i", *SEEN.names])
        self._connection.register("fresh", usable)
        return usable

    def add(self, ordered: pa.Table) -> None:
        """Remember a batch once bronze holds it, then forget what is over the memory bound."""
        fresh = self._with_id_and_time(ordered)
        if fresh.num_rows:
            newest = int(pa.compute.max(fresh.column("time")).as_py()) // self._width
            self._newest_bucket = max(self._newest_bucket or newest, newest)
        self._insert("fresh")
        self._evict()

    def _need(self, buckets: npt.NDArray[np.int64]) -> None:
        self._batch += 1
        needed = {int(b) + d for b in buckets for d in (-1, 0, 1)}
        missing = sorted(b for b in needed if b not in self._used)
        # Nothing in bronze is newer than the newest bucket, so those ahead need no reading.
        held = [b for b in missing if self._newest_bucket is not None and b <= self._newest_bucket]
        if held:
            loaded = self._load([self._span(first, last) for first, last in _runs(held)])
            self._connection.register("loaded", loaded)
            self._insert("loaded")
            self._connection.unregister("loaded")
        self._used.update(dict.fromkeys(needed, self._batch))

    def _insert(self, view: str) -> None:
        self._run(
            f"insert into seen select partition, time, hash_a, hash_b, content, "
            f"(time - ((time % {self._width}) + {self._width}) % {self._width}) // {self._width} "
            f"from {view}"
        )

    def _span(self, first: int, last: int) -> Span:
        return first * self._width, (last + 1) * self._width - 1

    def _evict(self) -> None:
        rows = self._rows()
        for bucket in sorted(self._used, key=lambda b: (self._used[b], b)):
            if rows <= self._rows_in_memory or self._used[bucket] == self._batch:
                return
            self._run("delete from seen where bucket = ?", [bucket])
            del self._used[bucket]
            rows = self._rows()

    def _rows(self) -> int:
        return int(self._run("select count(*) from seen")[0][0])

    def _run(self, sql: str, parameters: Sequence[int] = ()) -> list[tuple[int, ...]]:
        """Run a statement to its end: an unfinished result would block the next one."""
        return self._connection.execute(sql, parameters or None).fetchall()


def _runs(buckets: Iterable[int]) -> list[tuple[int, int]]:
    """Neighbouring numbers as ranges: 1 2 3 7 -> (1, 3), (7, 7)."""
    runs: list[tuple[int, int]] = []
    for bucket in buckets:
        if runs and runs[-1][1] == bucket - 1:
            runs[-1] = (runs[-1][0], bucket)
        else:
            runs.append((bucket, bucket))
    return runs
