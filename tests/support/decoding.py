"""Records as bronze decodes them, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.declaration.model import Record, RecordFormat
from headgate.flow.bronze.decoding.decoder import Decoder
from headgate.lake.tables.record_shape import record_schema

ARRIVED = datetime(2026, 3, 1, 12, tzinfo=UTC)


def block(values: list[bytes | None], format: RecordFormat) -> pa.Table:
    """A block of records. For CSV, ``values`` are the documents, too."""
    rows = [
        {"value": v, "document": v, "partition": 3, "offset": n}
        | {"ingested_at": ARRIVED, "seen_at": ARRIVED}
        for n, v in enumerate(values)
    ]
    return pa.Table.from_pylist(rows, record_schema("topic", has_document=format == "csv"))


def decoded(
    record: Record,
    values: list[bytes | None],
    *,
    all_validated: bool = False,
    format: RecordFormat = "json",
) -> list[Any]:
    """With ``all_validated``, the decoder leaves every value to the validator."""
    decoder = Decoder(record, format)
    with pytest.MonkeyPatch.context() as patched:
        if all_validated:
            every = np.ones(len(values), np.bool_)
            taken = [decoder._nothing] * len(values)
            patched.setattr(decoder, "_documents", lambda _: (taken, every))
        rows: list[Any] = decoder.decode(block(values, format)).to_pylist()
    return rows
