"""What bronze holds."""

from __future__ import annotations

from pyspark.sql.types import StructType

from headgate.bronze.record import record_type
from headgate.declaration.model import Source
from headgate.declaration.sources import kind_of_source
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
    place = kind_of_source(source).place
    return struct_type(
        f"partition int, offset bigint, key binary, headers {HEADERS}, value binary, "
        f"{place} string, ingested_at timestamp, seen_at timestamp, event_id string, "
        "event_time timestamp, clock timestamp, duplicate boolean, "
        f"record {record_type(source.record)}, reason string, reason_column string, "
        "reason_detail string, rescued string"
    )
