"""The hashes by which ids and contents are compared. They are not stored.

DuckDB's ``hash`` is not good enough: it hardly mixes blocks of eight bytes, so that ids with two
counters in them collide.
"""

from __future__ import annotations

from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa

_HASHES = "select md5_number(event_id) as id, md5_number(value) as content from given"


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """Created at first use and never closed. A thread-local connection would crash each forked
    child process: Python destroys the objects of other threads there, and DuckDB then crashes."""
    return duckdb.connect(":memory:", config={"threads": 1})


def hashes(rows: pa.Table) -> pa.Table:
    """``hash_a`` and ``hash_b``, the halves of the MD5 of the column ``event_id`` (null without an
    id), and ``content``, a half of the MD5 of the column ``value``, as int64."""
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
