"""The schema in which every source passes its records to bronze.

=============  ====================================  ==========================================
value          binary                                the bytes, exactly as read; null if a broker's
                                                     record has none
document       binary                                CSV only: the cells as a JSON object of texts;
                                                     null if they cannot be read
detail         string                                CSV only: why they cannot be read
key            binary                                the broker's key; null for files
headers        array<struct<key, value>>             the broker's headers; null for files
partition      int                                   0 for files; see ``flow.sources.kafka.topics``
offset         bigint                                a total order within the partition
file | topic   string                                path under the landing folder | Kafka topic
ingested_at    timestamp                             broker time; ``seen_at`` for files
seen_at        timestamp                             an event time too far after it is "future"
=============  ====================================  ==========================================
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from headgate.declaration.types import BINARY, STRING, Array, Struct

POSITION_BITS = 36  # an offset is sequence << 36 | position: files up to 64 GiB, 2^27 files

HEADERS = Array(Struct.of({"key": STRING, "value": BINARY}))
"""The type of ``headers``."""

IGNORED = "ignored"
"""What bronze has in the place of a quarantine reason for a record that goes to no other table: a
tombstone, if the declaration ignores them. Silver counts it as filtered."""


def offset_of(sequence: int, position: int = 0) -> int:
    """The offset of a position in the file recorded with ``sequence``."""
    return sequence << POSITION_BITS | position


def record_schema(place: str, *, has_document: bool = False) -> pa.Schema:
    """The Arrow schema; ``place`` is the source's column: ``file`` or ``topic``."""
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    time = pa.timestamp("us", "UTC")
    return pa.schema(
        [
            ("value", pa.binary()),
            *([("document", pa.binary()), ("detail", pa.string())] if has_document else []),
            ("key", pa.binary()),
            ("headers", pa.list_(header)),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            (place, pa.string()),
            ("ingested_at", time),
            ("seen_at", time),
        ]
    )


def double_text(number: float) -> str:
    """A finite double as Java writes it: ``1.0E7``, with the fewest digits that identify it."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    first, *rest = map(str, digits)
    assert isinstance(exponent, int)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"
