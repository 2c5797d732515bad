"""Bronze's rows: their columns, decoded records with their stamps, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Record, Source
from headgate.declaration.types import BIGINT, BINARY, BOOLEAN, INT, STRING, TIMESTAMP, Struct
from headgate.flow.bronze.decoding.columns import patched
from headgate.flow.bronze.reasons import Reason
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import described
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import struct_type
from headgate.lake.tables.record_shape import HEADERS


def record_type(record: Record) -> Struct:
    """The type of bronze's ``record`` column."""
    return Struct.of(record.types)


def bronze_type(source: Source) -> StructType:
    """The row type of bronze, which has every record ever read, in log order within its partition.

    ``clock``: the watermark at arrival, if it is after the record's own time; ``arrived``: when the
    record arrived, if that is not ``seen_at``; ``arrival_clock``: the arrival watermark at which it
    was read, if it is after its arrival (``arrivals.py``); ``duplicate``: an earlier record has its
    id; ``reason``: why it goes to quarantine, null for a valid record;
    ``reason_column``: the column of a wrong type; ``reason_detail``: the expected form and the
    value; ``record``: the declared fields; ``rescued``: a JSON object of undeclared fields, if the
    declaration requests it.
    """
    return struct_type(
        {
            "partition": INT,
            "offset": BIGINT,
            "key": BINARY,
            "headers": HEADERS,
            "value": BINARY,
            connector_of(source).place: STRING,
            "ingested_at": TIMESTAMP,
            "seen_at": TIMESTAMP,
            "event_id": STRING,
            "event_time": TIMESTAMP,
            "clock": TIMESTAMP,
            "arrived": TIMESTAMP,
            "arrival_clock": TIMESTAMP,
            "duplicate": BOOLEAN,
            "record": record_type(source.record),
            **dict.fromkeys(("reason", "reason_column", "reason_detail", "rescued"), STRING),
        }
    )


_TIME_COLUMN, _REASON = "event_time", "reason"
_ROW_GROUP = 1 << 26  # bytes in memory
# Columns whose values are all unique: a dictionary would be useless.
_UNIQUE = ("value", "key", "offset", "event_id")


@dataclass(frozen=True)
class RowShape:
    """``columns`` are the columns of the table."""

    record: Record
    columns: tuple[str, ...]

    def stamped(self, decoded: pa.Table, stamps: pa.Table) -> pa.Table:
        """Bronze's rows. ``stamps`` has the columns of ``STAMPS`` and ``ARRIVAL_STAMPS``; ``row``
        is a row of ``decoded``."""
        rows = stamps.column("row").to_numpy()

        def spread(name: str) -> pa.Array:  # null for all other rows
            values = stamps.column(name).combine_chunks()
            return patched(pa.nulls(len(decoded), values.type), rows, values)

        reason = decoded.column("reason")
        if self.record.quarantines_differing:
            # This reason has the lowest priority: a record with another reason keeps that one.
            refused = pc.and_(pc.fill_null(spread("differing"), False), pc.is_null(reason))
            reason = pc.if_else(refused, Reason.DIFFERING_DUPLICATE.value, reason)
        duplicate = pc.fill_null(spread("duplicate"), False)
        stamped = ("clock", "arrived", "arrival_clock")
        own = {name: spread(name) for name in stamped if name in self.columns}
        own |= {"duplicate": duplicate, "reason": reason}
        return pa.table({n: own[n] if n in own else decoded.column(n) for n in self.columns})


def write_rows(storage: Storage, path: str, tables: Iterable[pa.Table]) -> tuple[DataFile, ...]:
    """Write rows of one schema to a new file, and describe it. Writes no file if there are no rows.
    Rows with a reason have row groups of their own: quarantine reads only these."""
    groups = _grouped(tables)
    if (first := next(groups, None)) is None:
        return ()
    with storage.create(path) as file, _writer(file, first.schema) as writer:
        for rows in chain([first], groups):
            writer.write_table(rows, row_group_size=len(rows))
    stat = storage.stat(path)
    assert stat is not None
    return (described(storage, path, stat.size, _TIME_COLUMN),)


def _writer(file: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    leaves = [path for field in schema for path in _leaves(field, field.name)]
    return pq.ParquetWriter(
        file,
        schema,
        use_dictionary=[path for path in leaves if path not in _UNIQUE],
        dictionary_pagesize_limit=1 << 16,
        # Queries filter by ranges of times, quarantine by whether a row group has a reason.
        write_statistics=[_TIME_COLUMN, _REASON],
        write_page_checksum=True,
        store_decimal_as_integer=True,
        store_schema=False,
    )


def _leaves(field: pa.Field, path: str) -> Iterator[str]:
    type_ = field.type
    if pa.types.is_struct(type_):
        for child in type_:
            yield from _leaves(child, f"{path}.{child.name}")
    elif pa.types.is_list(type_):
        yield from _leaves(type_.value_field, f"{path}.list.element")
    elif pa.types.is_map(type_):
        yield from _leaves(type_.key_field, f"{path}.key_value.key")
        yield from _leaves(type_.item_field, f"{path}.key_value.value")
    else:
        yield path


def _grouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows in groups of about ``_ROW_GROUP`` bytes. Rows with a reason have separate groups."""
    groups, sizes = (list[pa.Table](), list[pa.Table]()), [0, 0]
    for table in tables:
        for kind, rows in enumerate(_divided(table)):
            if len(rows):
                groups[kind].append(rows)
                sizes[kind] += rows.nbytes
            if sizes[kind] >= _ROW_GROUP:
                yield pa.concat_tables(groups[kind])
                groups[kind].clear()
                sizes[kind] = 0
    yield from (pa.concat_tables(group) for group in groups if group)


def _divided(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows without and with a reason."""
    reasons = rows.column(_REASON)
    if reasons.null_count == len(rows):
        return rows, rows.slice(0, 0)
    return rows.filter(pc.is_null(reasons)), rows.filter(pc.is_valid(reasons))
