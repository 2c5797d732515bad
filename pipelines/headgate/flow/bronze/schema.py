"""The columns of bronze."""

from __future__ import annotations

from pyspark.sql.types import StructType

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Record, Source
from headgate.declaration.types import BIGINT, BINARY, BOOLEAN, INT, STRING, TIMESTAMP, Struct
from headgate.lake.tables.frames import struct_type
from headgate.lake.tables.record_shape import HEADERS


def record_type(record: Record) -> Struct:
    """The type of bronze's ``record`` column."""
    return Struct.of(record.types)


def bronze_type(source: Source) -> StructType:
    """The row type of bronze, which has every record ever read, in log order within its partition.

    ``clock``: the watermark at arrival, if it is after the record's own time; ``duplicate``: an
    earlier record has its id; ``reason``: why it goes to quarantine, null for a valid record;
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
            "duplicate": BOOLEAN,
            "record": record_type(source.record),
            **dict.fromkeys(("reason", "reason_column", "reason_detail", "rescued"), STRING),
        }
    )
