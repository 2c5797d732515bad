"""The stages of the publications of a pipeline."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pyspark.sql import SparkSession

from headgate.declaration.model import Pipeline, Publication
from headgate.graph.graph import Layer
from headgate.publish.gate_events import GateEventStage
from headgate.publish.gate_mirror import GateMirrorStage
from headgate.publish.mirror import MirrorStage
from headgate.publish.position import Position
from headgate.publish.stage import LogStage
from headgate.sinks.contract import Mirror, SinkContext, writer_of
from headgate.storage.files import Storage
from headgate.tables.table import Table


class Stage(Protocol):
    """The only writer of one publication's position, which is in ``table``. It follows ``source``;
    ``layer`` is the layer of its job."""

    publication: Publication
    source: Table
    table: Table

    @property
    def layer(self) -> Layer: ...

    def create(self) -> None:
        """Create the table of the position. Raises PublicationChangedError."""

    def catch_up(self, now: datetime) -> bool:
        """Publish everything that is available now. Returns whether everything is published;
        otherwise it must be called again. Raises the errors of the sink, CommitRefusedError,
        FencedError."""

    def failure(self, error: Exception) -> str | None:
        """A message about an error of the sink; None if the error has another cause."""

    def close(self) -> None:
        """End the sink's work in the background."""


def stage_of(
    spark: SparkSession, storage: Storage, pipeline: Pipeline, publication: Publication
) -> Stage:
    """``storage`` is the folder of the pipeline."""
    context = SinkContext(pipeline.name, publication.name, storage)
    writer = writer_of(publication, context)
    position = Position(storage, pipeline, publication)
    is_gate = publication.layer == "gate"
    if isinstance(writer, Mirror):
        if is_gate:
            return GateMirrorStage(storage, position, writer)
        return MirrorStage(spark, pipeline, position, writer)
    if is_gate:
        return GateEventStage(spark, storage, position, writer)
    return LogStage(spark, pipeline, position, writer)
