"""The stage of one publication: reads new rows of its table, sends them, commits its position."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate import exit_codes
from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.model import Pipeline, Publication
from headgate.declaration.sources import kind_of_source
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.graph.graph import graph_of
from headgate.publish.changes import changes
from headgate.publish.messages import BATCH, of_gold, of_late, of_quarantine
from headgate.sinks.contract import Outgoing, writer_of
from headgate.storage.files import Storage
from headgate.tables.catching_up import grouped
from headgate.tables.data_file import FINAL, DataFile
from headgate.tables.frames import Rows, row_type
from headgate.tables.log import Commit
from headgate.tables.payloads.publication import PublicationPayload
from headgate.tables.projection import Projection
from headgate.tables.table import Table

ROWS_PER_STEP = 100_000
"""Commits are published together up to this many rows, so that a long backlog takes few steps."""
MOST_UNSENT = 1000
"""The number of commits without rows to send after which the position is committed."""


class PublicationChangedError(HeadgateError, code=exit_codes.USAGE):
    """The publication's position was recorded for another definition."""


class PublishStage:
    """The only writer of one publication's position. ``layer`` is the layer of its job."""

    def __init__(
        self, spark: SparkSession, storage: Storage, pipeline: Pipeline, publication: Publication
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self.publication = publication
        node = graph_of(pipeline)[PUBLICATION.path(publication.name)]
        self.layer = node.layer
        self.source = Table(storage, node.upstream[0], pipeline=pipeline.name)
        self.table = Table(storage, node.path, pipeline=pipeline.name)
        self._rows = Rows(spark, self.source)
        self._messages: tuple[str, Projection] | None = None
        self._read_upto = 0
        self._writer = writer_of(publication)

    @property
    def definition(self) -> str:
        """Identifies the table whose commits the position counts."""
        meant = f"{self.source.name} {self.publication.when}"
        return hashlib.sha256(meant.encode()).hexdigest()

    def create(self) -> None:
        """Create the table of the position, which has commits and no rows. A new publication of an
        existing table begins with the table's first commit."""
        schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
        self.table.create(schema, self.definition, time_column="at")
        if self.table.refresh().definition != self.definition:
            name = self.publication.name
            raise PublicationChangedError(
                f"publish {name}: it has published another table, or at other times, before",
                remedy=f"give it another name than {name}, and it begins with the first row",
            )

    def catch_up(self, now: datetime) -> None:
        """Publish all rows that the table's log has now.

        Raises the errors of the sink (``failure`` describes them), CommitRefusedError, FencedError.
        """
        self.source.refresh()
        newest = self.source.handle.version()
        held = PublicationPayload.of(self.table.refresh()).version
        position = self._writer.position(held)
        if position > held:
            self._commit(position, self.table.refresh().n, now)
        commits = changes(self.source, max(position, self._read_upto), newest)
        wanted = (c for c in commits if self._wanted(c))
        # A change carries its batch id, so send one batch at a time.
        together = 0 if self.publication.when == "update" else ROWS_PER_STEP
        for group in grouped(wanted, together):
            self._writer.send(self._outgoing(group, position))
            failpoint("publish.sent")
            self._commit(group[-1].version, group[-1].state.n, now)
            position = group[-1].version
            failpoint("publish.committed")
        self._read_upto = newest
        if newest - position >= MOST_UNSENT:
            self._commit(newest, self.table.refresh().n, now)

    def _commit(self, version: int, n: int, now: datetime) -> None:
        held = self.table.refresh()
        self.table.commit(held.absorbing(n, now, PublicationPayload(version)))

    def _wanted(self, commit: Commit) -> bool:
        return self.publication.when != "final" or any(f.is_final for f in commit.files)

    def failure(self, error: Exception) -> str | None:
        """A message about an error of the sink; None if the error has another cause."""
        return self._writer.failure(error)

    def _outgoing(self, group: Sequence[Commit], after: int) -> Outgoing:
        shape, rows = self.source.state.shape, self._rows_of(group)
        if self._messages is None or self._messages[0] != shape:
            self._messages = shape, self._message_columns()
        return Outgoing(rows, self._messages[1].of(rows), after, group[-1].version)

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
        """The open rows that this commit changed: those with its batch id, or all of a rebuild."""
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
            return of_quarantine(publication, columns, kind_of_source(source).place)
        table = self._pipeline.gold[publication.table]
        if publication.layer == "late":
            return of_late(publication, columns, table)
        return of_gold(publication, columns, table)
