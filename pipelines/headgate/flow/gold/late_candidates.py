"""Reads the silver rows that may be late. Spark is not used, because a job would cost more."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from headgate.lake.tables.damage import sound_batches
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import arrow_schema, row_type
from headgate.lake.tables.table import Table

FEW = 10_000
"""Up to this many late pairs of a step are written without a Spark job."""
MOST = 100_000
"""At most this many rows that may be late are held in memory."""


def late_candidates(silver: Table, files: Iterable[DataFile], slack: int) -> pa.Table | None:
    """The rows of some files that were behind the watermark at arrival by more than ``slack``
    microseconds (``Assignment``); None if there are more than ``MOST``. Unless a drain has closed
    results, no other row is late. Raises DamagedFileError."""
    behind_by = pa.scalar(slack, pa.duration("us"))
    schema = arrow_schema(row_type(silver))
    found = [schema.empty_table()]
    for file in files:
        for batch in sound_batches(silver.storage, file, schema.names):
            from_then = pc.add(batch.column("_event_time"), behind_by)
            behind = batch.filter(pc.greater(batch.column("_clock"), from_then))
            found.append(pa.Table.from_batches([behind]).select(schema.names).cast(schema))
            if sum(map(len, found)) > MOST:
                return None
    return pa.concat_tables(found).combine_chunks()
