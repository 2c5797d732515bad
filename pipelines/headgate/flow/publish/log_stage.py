"""The stage of a publication to a log: reads new rows of its table, sends them as messages, commits
its position.

A message has a key, a value, headers, and an id that is a function of the row:

===========  =============================  ====================  ==================================
from         key                            value                 headers beside ``headgate-id``
===========  =============================  ====================  ==================================
gold         JSON: its begin and ``by``     JSON of the row       table, final, revision, batch
late         the event's id                 JSON of the row       table, reason
quarantine   the event's id, or null        the bytes as read     table, reason, column, detail,
                                                                  partition, offset, file or topic
===========  =============================  ====================  ==================================

A result of gold that is gone has a message with its key and no value, which removes the key from a
compacted topic; the headers are ``removed`` and ``batch``.

Names of headers begin with ``headgate-``; values are text. Messages with the same id have the same
content, except for ``updated_at`` of a row that was computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import key_of_gold, late_identity
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import GoldTable, Pipeline, Publication
from headgate.failpoints import failpoint
from headgate.flow.publish.changes import changes, may_remove_results
from headgate.flow.publish.publication import (
    JSON,
    MOST_UNSENT,
    PublicationStage,
    PublishedPosition,
)
from headgate.flow.publish.sinks.writers import Outgoing, Writer
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.frames import Projection, TableRows, row_type, struct_of
from headgate.lake.tables.history import grouped, removed_file
from headgate.lake.tables.log import Commit, read_commit
from headgate.lake.tables.state import State

BATCH = "_batch"
"""A column of the rows: the batch id of a change, null for a final row."""


def gold_messages(publication: Publication, columns: Sequence[str], table: GoldTable) -> Projection:
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


def removed_messages(publication: Publication, gone: DataFrame, state: State) -> DataFrame:
    """``gone`` has the ``key`` of each result that a commit with this state has removed."""
    commit = f"removed {state.generation} {state.n} {state.operation}"
    identity = F.concat_ws(" ", F.lit(_table(publication)), F.col("key"), F.lit(commit))
    headers = {
        "id": F.sha2(identity, 256),
        "table": F.lit(_table(publication)),
        "removed": F.lit("true"),
        "batch": F.lit(str(state.n)),
    }
    return gone.select(
        F.col("key").cast("binary").alias("key"),
        F.lit(None).cast("binary").alias("value"),
        _headers(headers).alias("headers"),
    )


def late_messages(publication: Publication, columns: Sequence[str], table: GoldTable) -> Projection:
    identity = late_identity(table)
    headers = {"reason": F.col("reason")}
    return _message(publication, F.col("_event_id"), _json(columns), identity, headers)


def quarantine_messages(publication: Publication, columns: Sequence[str], place: str) -> Projection:
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
    table = F.lit(_table(publication))
    texts = {"id": F.sha2(F.concat_ws(" ", table, _json(identity)), 256), "table": table, **headers}
    return Projection(
        key.cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        _headers(texts).alias("headers"),
    )


def _table(publication: Publication) -> str:
    return f"{publication.layer}.{publication.table}"


def _headers(texts: Mapping[str, Column]) -> Column:
    """The headers of a message. A null is left out."""
    pairs = (
        F.when(
            text.isNotNull(),
            F.struct(F.lit(f"headgate-{name}").alias("key"), text.cast("binary").alias("value")),
        )
        for name, text in texts.items()
    )
    return F.array_compact(F.array(*pairs))


def _json(columns: Sequence[str]) -> Column:
    return F.to_json(struct_of(columns), JSON)


def _alike(commit: Commit) -> tuple[int, int]:
    """Commits with the same value may be sent together. One that may have removed results is sent
    alone: a later commit may have the same keys again."""
    return commit.state.generation, commit.version if may_remove_results(commit) else 0


ROWS_PER_STEP = 100_000
"""Commits are published together up to this many rows, so that a long backlog takes few steps."""


class LogStage(PublicationStage):
    """For a sink that takes messages."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, position: PublishedPosition, writer: Writer
    ) -> None:
        super().__init__(position, writer)
        self._spark = spark
        self._pipeline = pipeline
        self._rows = TableRows(spark, self.source)
        self._messages: tuple[str, Projection] | None = None
        self._read_upto = 0
        self._writer = writer
        # The step that a sink still sends in the background.
        self._begun: tuple[Sequence[Commit], Outgoing] | None = None

    def close(self) -> None:
        self._writer.close()

    def catch_up(self, now: datetime) -> bool:
        """Publish all rows that the table's log has now. Returns whether all were sent.

        Raises the errors of the sink (``failure`` describes them), CommitRefusedError, FencedError.
        """
        self.source.refresh()
        newest = self.source.version
        held = self._position.version
        at = self._writer.position(held)
        if at > held:
            self._position.move(at, now)
        for group, outgoing in self._groups(at, newest):
            self._begun = group, outgoing
            if not self._writer.send(outgoing):
                return False
            failpoint("publish.sent")
            at = group[-1].version
            self._position.move(at, now, group[-1].state.n)
            self._begun = None
            failpoint("publish.committed")
        self._read_upto = newest
        if newest - at >= MOST_UNSENT:
            self._position.move(newest, now)
        return True

    def _groups(self, at: int, newest: int) -> Iterator[tuple[Sequence[Commit], Outgoing]]:
        """Groups of commits to send together; the first is the one that the sink has begun."""
        if (begun := self._begun) is not None and begun[1].after == at:
            yield begun
            at = begun[1].upto
        commits = changes(self.source, max(at, self._read_upto), newest)
        wanted = (c for c in commits if self._wanted(c))
        # A change carries its batch id, so send one batch at a time.
        together = 0 if self.publication.when == "update" else ROWS_PER_STEP
        # After a restore or a rebuild, revisions begin again: within a step, rows would not be in
        # order.
        for _, alike in groupby(wanted, _alike):
            for group in grouped(alike, together):
                yield group, self._outgoing(group, at)
                at = group[-1].version

    def _wanted(self, commit: Commit) -> bool:
        if self.publication.when != "final":
            return True
        return any(f.is_final for f in commit.files) or bool(commit.removed_final)

    def _outgoing(self, group: Sequence[Commit], after: int) -> Outgoing:
        shape, rows = self.source.state.shape, self._rows_of(group)
        if self.publication.layer == "gold" and len(group) > 1:
            rows = self._in_order(rows)
        if self._messages is None or self._messages[0] != shape:
            self._messages = shape, self._message_columns()
        sent = [f for c in group for f in c.files if self.is_sent(f)]
        count, size = sum(f.rows for f in sent), sum(f.size for f in sent)
        messages = self._messages[1].of(rows)
        if may_remove_results(group[0]):
            messages = messages.unionByName(self._removed(group[0]))
        return Outgoing(rows, messages, after, group[-1].version, count, size)

    def _removed(self, batch: Commit) -> DataFrame:
        """The messages of results that are gone: of their rows, those that are sent were removed by
        a commit, and it has added none."""
        commit = read_commit(self.source.storage, batch.version)
        assert commit is not None
        # A file that another tool has vacuumed is left out: its keys keep their last message.
        removed = [
            file
            for path in commit.removed
            if self.publication.when != "final" or path in commit.removed_final
            if (file := removed_file(self.source, path, is_final=path in commit.removed_final))
        ]
        table = self._pipeline.gold[self.publication.table]
        key = _json(key_of_gold(table)).alias("key")
        before, after = (
            self._rows.of([f for f in files if self.is_sent(f)]).select(key)
            for files in (removed, commit.files)
        )
        gone = before.join(after, "key", "left_anti")
        return removed_messages(self.publication, gone, commit.state)

    def _in_order(self, rows: DataFrame) -> DataFrame:
        """Sort the rows of one key within one partition. Otherwise two tasks of Spark would send
        them in any order, and a compacted topic might keep the older one."""
        key = key_of_gold(self._pipeline.gold[self.publication.table])
        together = rows.repartition(*(F.col(f"`{name}`") for name in key))
        return together.sortWithinPartitions("revision", "updated_at")

    def _rows_of(self, group: Sequence[Commit]) -> DataFrame:
        files = [f for batch in group for f in batch.files]
        if self.publication.layer != "gold":
            return self._rows.of(files)
        final = self._with(self._rows.of([f for f in files if f.is_final]), final=True, n=None)
        if self.publication.when == "final":
            return final
        (batch,) = group
        opened = [f for f in files if not f.is_final]
        return final.unionByName(self._changed(opened, batch))

    def _changed(self, files: Sequence[DataFile], batch: Commit) -> DataFrame:
        """The open rows that this commit has changed: those whose ``updated_at`` is the time of the
        commit, or all rows of a rebuild."""
        if batch.state.kind == "reset":
            return self._with(self._rows.of(files), final=False, n=batch.state.n)
        at = pa.table({"at": pa.array([batch.state.at], pa.timestamp("us", "UTC"))})
        moment = F.broadcast(self._spark.createDataFrame(at))
        rows = self._rows.of(files).join(moment, F.col("updated_at") == F.col("at")).drop("at")
        return self._with(rows, final=False, n=batch.state.n)

    def _with(self, rows: DataFrame, *, final: bool, n: int | None) -> DataFrame:
        number = pa.table({BATCH: pa.array([n], pa.int64())})
        joined = rows.crossJoin(F.broadcast(self._spark.createDataFrame(number)))
        return joined.withColumn(FINAL, F.lit(final))

    def _message_columns(self) -> Projection:
        publication = self.publication
        columns = row_type(self.source).fieldNames()
        if publication.layer == "quarantine":
            source = self._pipeline.sources[publication.table]
            return quarantine_messages(publication, columns, connector_of(source).place)
        table = self._pipeline.gold[publication.table]
        if publication.layer == "late":
            return late_messages(publication, columns, table)
        return gold_messages(publication, columns, table)
