"""What a look-up costs and waits for; that it is right is tested in ``property``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.bronze.id_index import IdIndex, Ints
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


def test_a_look_waits_for_what_is_being_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    add = IdIndex.add

    def slowly(index: IdIndex, keys: Ints, columns: Sequence[Ints]) -> None:
        time.sleep(0.3 if len(keys) else 0)
        add(index, keys, columns)

    monkeypatch.setattr(IdIndex, "add", slowly)
    seen = Seen(600 * SECOND, "warn", lambda _: SEEN.empty_table(), None)
    seen.add(_records(10, first=0))
    duplicate, _ = seen.find(_records(10, first=10))
    assert duplicate.all()


def test_what_could_not_be_remembered_is_told_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(IdIndex, "add", full)
    seen = Seen(600 * SECOND, "warn", lambda _: SEEN.empty_table(), None)
    seen.add(_records(10, first=0))
    with pytest.raises(MemoryError):
        seen.find(_records(10, first=10))


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
