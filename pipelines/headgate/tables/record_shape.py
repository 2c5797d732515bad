"""The schema in which every source passes its records to bronze.

=============  ====================================  ==========================================
value          string                                the bytes, exactly as read
parse          string                                CSV only: the cells as a JSON object of texts
key            binary                                the broker's key; null for files
headers        array<struct<key, value>>             the broker's headers; null for files
partition      int                                   0 for files; see ``sources.kafka.topics``
offset         bigint                                a total order within the partition
file | topic   string                                path under the landing folder | Kafka topic
ingested_at    timestamp                             file modification time or broker time
seen_at        timestamp                             what "future" is measured from
=============  ====================================  ==========================================

Spark's strings can have any bytes, valid UTF-8 or not. Spark reads strings without a copy, but
copies binaries at each access. Bronze stores ``value`` as binary.
"""

from __future__ import annotations

from headgate.declaration.types import BINARY, STRING, Array, Struct

POSITION_BITS = 36  # an offset is sequence << 36 | position: files up to 64 GiB, 2^27 files

HEADERS = Array(Struct.of({"key": STRING, "value": BINARY}))
"""The type of ``headers``."""


def offset_of(sequence: int, position: int = 0) -> int:
    """The offset of a position in the file recorded with ``sequence``."""
    return sequence << POSITION_BITS | position


def record_shape(place: str) -> str:
    """The Spark schema; ``place`` is the source's: ``file`` or ``topic``."""
    return (
        f"value string, key binary, headers {HEADERS}, partition int, offset bigint, "
        f"{place} string, ingested_at timestamp, seen_at timestamp"
    )
