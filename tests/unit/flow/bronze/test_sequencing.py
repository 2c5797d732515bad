"""The counts of a batch, against its records one by one."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from headgate.declaration.model import Duplicates, EventTime, OnDiffering, Record
from headgate.flow.bronze.sequencing import SEQUENCER_INPUT, STAMPS, Sequenced, counts_of

RECORDS = [  # size, conforms
    (1, True),
    (10, False),
    (100, True),  # a duplicate
    (1_000, False),  # a duplicate
    (10_000, True),  # differs from an earlier copy
    (None, False),  # without a value
]


@pytest.mark.parametrize(("differing", "quarantined"), [("quarantine", 10_010), ("keep", 10)])
def test_each_byte_has_one_outcome(differing: OnDiffering, quarantined: int) -> None:
    columns = {name: pa.nulls(len(RECORDS)) for name in SEQUENCER_INPUT.names}
    columns["size"], columns["conforms"] = map(pa.array, zip(*RECORDS, strict=True))
    stamps = [stamp(2, duplicate=True), stamp(3, duplicate=True), stamp(4, differing=True)]
    sequenced = Sequenced(pa.Table.from_pylist(stamps, STAMPS), {}, None, 2, 1, 0)
    assert counts_of(pa.table(columns).cast(SEQUENCER_INPUT), sequenced, record(differing)) == {
        "read": 6,
        "duplicate": 2,
        "differing": 1,
        "corrected": 0,
        "read_bytes": 11_111,
        "duplicate_bytes": 1_100,
        "quarantined_bytes": quarantined,
    }


def test_a_batch_without_records_has_no_bytes() -> None:
    nothing = Sequenced(STAMPS.empty_table(), {}, None, 0, 0, 0)
    counts = counts_of(SEQUENCER_INPUT.empty_table(), nothing, record("quarantine"))
    assert set(counts.values()) == {0}


def record(differing: OnDiffering) -> Record:
    rule = Duplicates(timedelta(hours=1), differing)
    return Record(("id",), EventTime("at"), (), rule)


def stamp(row: int, *, duplicate: bool = False, differing: bool = False) -> dict[str, object]:
    return {"row": row, "duplicate": duplicate, "differing": differing}
