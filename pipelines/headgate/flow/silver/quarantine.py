"""Quarantine: invalid records with their bytes and the reason.

Arrow reads and writes them on the driver. They are few, and a Spark job would cost more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Source
from headgate.declaration.names import POSITION
from headgate.declaration.types import BINARY, STRING, TIMESTAMP
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import read_sound, require_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import arrow_schema, struct_type
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.record_shape import IGNORED
from headgate.lake.tables.table import Table

_ROWS = 65_536  # read at once, so that a large batch does not fill the memory


def quarantine_type(source: Source) -> StructType:
    """``table`` is null if the record itself is invalid; ``column`` names a column of the wrong
    type; ``detail`` gives the expected form and the value, if they are known."""
    return struct_type(
        {
            **POSITION,
            "event_id": STRING,
            "event_time": TIMESTAMP,
            **dict.fromkeys(("reason", "column", "detail", "table"), STRING),
            "value": BINARY,
            connector_of(source).place: STRING,
            "ingested_at": TIMESTAMP,
        }
    )


class QuarantineTransform:
    """Selects the bronze rows that go to quarantine, and converts them."""

    def __init__(self, source: Source) -> None:
        self._schema = arrow_schema(quarantine_type(source))
        renamed = {"column": "reason_column", "detail": "reason_detail"}
        self._bronze = {
            name: renamed.get(name, name) for name in self._schema.names if name != "table"
        }

    def quarantined(self, bronze: Storage, files: Sequence[DataFile]) -> pa.Table:
        """The rows of ``quarantine_type`` among some files of bronze. A duplicate is never one of
        them, because its first copy is already counted.

        Raises DamagedFileError or OSError if a file is damaged.
        """
        require_sound(bronze, files)
        found = [self._rows(part) for file in files for part in _failed(bronze, file, self._bronze)]
        return pa.concat_tables([self._schema.empty_table(), *found])

    def _rows(self, bronze: pa.Table) -> pa.Table:
        nothing = pa.nulls(len(bronze), pa.string())
        columns = {name: bronze.column(theirs) for name, theirs in self._bronze.items()}
        rows = {name: columns.get(name, nothing) for name in self._schema.names}
        return pa.table(rows).cast(self._schema)


def new_rows(rows: pa.Table, table: Table, identity: Iterable[str]) -> pa.Table:
    """The rows that a table does not have yet, by the columns ``identity``. Raises DamagedFileError
    if a file of the table is damaged."""
    names, handle = list(identity), table.handle
    files = with_footers(table, handle.version(), live_files(handle))
    known = [read_sound(table.storage, file, names) for file in files]
    if not known:
        return rows
    places = rows.select(names).append_column("row", pa.arange(0, len(rows)))
    unknown = places.join(pa.concat_tables(known), names, join_type="left anti")
    return rows.take(unknown.column("row").combine_chunks().sort())


def _failed(bronze: Storage, file: DataFile, columns: dict[str, str]) -> Iterator[pa.Table]:
    with bronze.open(file.path) as source:
        parquet = pq.ParquetFile(source, page_checksum_verification=True)
        wanted = [*columns.values(), "duplicate"]
        for group in range(parquet.num_row_groups):
            if not _may_have_reasons(parquet.metadata.row_group(group)):
                continue
            reasons = parquet.read_row_group(group, columns=["reason", "duplicate"])
            if pc.any(_is_failed(reasons)).as_py():
                for batch in parquet.iter_batches(_ROWS, row_groups=[group], columns=wanted):
                    part = pa.Table.from_batches([batch])
                    yield part.filter(_is_failed(part))


def _may_have_reasons(group: pq.RowGroupMetaData) -> bool:
    """Whether a row group may have rows with a reason. Bronze keeps these in row groups of their
    own; other tools do not."""
    columns = (group.column(place) for place in range(group.num_columns))
    reason = next(column for column in columns if column.path_in_schema == "reason")
    known = reason.statistics
    return known is None or not known.has_null_count or known.null_count < reason.num_values


def _is_failed(rows: pa.Table) -> pa.ChunkedArray:
    reason = rows.column("reason")
    is_refused = pc.and_(pc.is_valid(reason), pc.not_equal(reason, IGNORED))
    return pc.and_(is_refused, pc.invert(rows.column("duplicate")))
