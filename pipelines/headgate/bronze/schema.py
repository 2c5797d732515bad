"""What bronze holds."""

from __future__ import annotations

from pyspark.sql.types import StructType

from headgate.bronze.record import record_type
from headgate.declaration.model import Source
from headgate.declaration.sources import kind_of_source
from headgate.declaration.types import BIGINT, BINARY, BOOLEAN, INT, STRING, TIMESTAMP
from headgate.tables.frames import struct_type
from headgate.tables.record_shape import HEADERS


def bronze_type(source: Source) -> StructType:
    """Every record ever read, in log order within its partition.

    ``clock``: the greatest event time before it, where that is ahead of its own; ``duplicate``:
    an earlier record has its id; ``reason``: why it goes to quarantine, null if it conforms;
    ``reason_column`` is the column of a wrong type, ``reason_detail`` what was expected and what
    came; ``record``: the declared fields, parsed once,
    here; ``rescued``: a JSON object of undeclared fields, where asked.
    """
    return struct_type(
        {
            "partition": INT,
            "offset": BIGINT,
            "key": BINARY,
            "headers": HEADERS,
            "value": BINARY,
            kind_of_source(source).place: STRING,
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
