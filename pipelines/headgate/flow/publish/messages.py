"""Converts rows to messages: key, value, headers, and an id that is a function of the row.

===========  =============================  ====================  ==================================
from         key                            value                 headers beside ``headgate-id``
===========  =============================  ====================  ==================================
gold         JSON: its begin and ``by``     JSON of the row       table, final, revision, batch
late         the event's id                 JSON of the row       table, reason
quarantine   the event's id, or null        the bytes as read     table, reason, column, detail,
                                                                  partition, offset, file or topic
===========  =============================  ====================  ==================================

Names of headers begin with ``headgate-``; values are text. Messages with the same id have the same
content, except for ``updated_at`` of a row that was computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import begin_of
from headgate.declaration.model import GoldTable, Publication
from headgate.flow.publish.identity import JSON, key_of_gold
from headgate.lake.tables.frames import struct_of
from headgate.lake.tables.projection import Projection

BATCH = "_batch"
"""A column of the rows: the batch id of a change, null for a final row."""


def of_gold(publication: Publication, columns: Sequence[str], table: GoldTable) -> Projection:
    """Messages of gold rows with ``columns`` and ``BATCH``. A compacted topic keeps the last
    message of each result and key. If a restore or a backfill computes a row again with other
    values, the new row has another id."""
    key = _json(key_of_gold(table))
    identity = [*(name for name in columns if name != "updated_at"), BATCH]
    headers = {
        "final": F.col("final").cast("string"),
        "revision": F.col("revision").cast("string"),
        "batch": F.col(BATCH).cast("string"),
    }
    return _message(publication, key, _json(columns), identity, headers)


def of_late(publication: Publication, columns: Sequence[str], table: GoldTable) -> Projection:
    identity = ["_partition", "_offset", *begin_of(table)]
    headers = {"reason": F.col("reason")}
    return _message(publication, F.col("_event_id"), _json(columns), identity, headers)


def of_quarantine(publication: Publication, columns: Sequence[str], place: str) -> Projection:
    """``place`` is the column with the place of a record in its source: ``file`` or ``topic``."""
    named = ("reason", "column", "detail", "partition", "offset", place)
    headers = {name: F.col(f"`{name}`").cast("string") for name in named if name in columns}
    identity = ["partition", "offset", "table"]
    return _message(publication, F.col("event_id"), F.col("value"), identity, headers)


def _message(
    publication: Publication,
    key: Column,
    value: Column,
    identity: Sequence[str],
    headers: dict[str, Column],
) -> Projection:
    table = F.lit(f"{publication.layer}.{publication.table}")
    texts = {"id": F.sha2(F.concat_ws(" ", table, _json(identity)), 256), "table": table, **headers}
    pairs = (
        F.when(
            text.isNotNull(),
            F.struct(F.lit(f"headgate-{name}").alias("key"), text.cast("binary").alias("value")),
        )
        for name, text in texts.items()
    )
    return Projection(
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        F.array_compact(F.array(*pairs)).alias("headers"),
    )


def _json(columns: Sequence[str]) -> Column:
    return F.to_json(struct_of(columns), JSON)
