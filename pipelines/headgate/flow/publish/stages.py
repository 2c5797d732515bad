"""The stages of the publications of a pipeline."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate.declaration.model import Pipeline, Publication
from headgate.flow.publish.contract import Stage
from headgate.flow.publish.gate_events import GateEventStage
from headgate.flow.publish.gate_mirror import GateMirrorStage
from headgate.flow.publish.mirror import MirrorStage
from headgate.flow.publish.position import Position
from headgate.flow.publish.sinks.writers import Mirror, SinkContext, writer_of
from headgate.flow.publish.stage import LogStage
from headgate.lake.storage.files import Storage


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
