"""The 64-bit hashes by which ids and contents are compared."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

HASHES = ("hash_a", "hash_b", "content")


def hashes(event_id: Column) -> tuple[Column, ...]:
    """Two independent hashes of the id (null without an id), and one of the column ``value``."""
    return (
        F.when(event_id.isNotNull(), F.xxhash64(event_id)).alias("hash_a"),
        F.when(event_id.isNotNull(), F.xxhash64(F.lit("headgate"), event_id)).alias("hash_b"),
        F.xxhash64("value").alias("content"),
    )
