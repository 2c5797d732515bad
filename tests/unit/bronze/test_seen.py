"""What a look-up costs where a producer is broken; that it is right is tested in ``property``."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from headgate.bronze.seen import SEEN, Seen
from headgate.bronze.sequencing import FIT

SECOND = 1_000_000


def test_one_id_for_all_records_does_not_stall_the_stream() -> None:
    """Pairs of them would be thousands of millions: minutes, not seconds."""
    seen = Seen(600 * SECOND, "warn", lambda _: SEEN.empty_table(), None)
    began = time.monotonic()
    for batch in range(2):
        records = _records(40_000, first=batch * 40_000)
        duplicate, differing = seen.find(records)
        seen.add(records)
        assert duplicate.sum() == differing.sum() == 40_000 - (batch == 0)
    assert time.monotonic() - began < 20


def _records(count: int, first: int) -> pa.Table:
    """Records of one id, each with other content, a millisecond apart."""
    number = np.arange(first, first + count)
    columns = {
        "partition": np.zeros(count, np.int32),
        "offset": number,
        "time": number * 1000,
        "hash_a": np.full(count, 7),
        "hash_b": np.full(count, 9),
        "content": number,
    }
    rest = {name: pa.nulls(count, pa.string()) for name in ("reason", "reason_column", "rescued")}
    return pa.table({**columns, **rest}).select(FIT.names).cast(FIT)
