"""The stages of the publications of a pipeline."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate.declaration.model import Pipeline, Publication
from headgate.flow.publish.gate_stages import GateEventStage, GateMirrorStage
from headgate.flow.publish.log_stage import LogStage
from headgate.flow.publish.mirror_stage import MirrorStage
from headgate.flow.publish.publication import PublicationStage, PublishedPosition
from headgate.flow.publish.sinks.writers import Mirror, SinkContext, writer_of
from headgate.lake.storage.files import Storage


def stage_of_publication(
    spark: SparkSession, storage: Storage, pipeline: Pipeline, publication: Publication
) -> PublicationStage:
    """``storage`` is the folder of the pipeline."""
    context = SinkContext(pipeline.name, publication.name, storage)
    writer = writer_of(publication, context)
    position = PublishedPosition(storage, pipeline, publication)
    is_gate = publication.layer == "gate"
    if isinstance(writer, Mirror):
        if is_gate:
            return GateMirrorStage(storage, position, writer)
        return MirrorStage(spark, pipeline, position, writer)
    if is_gate:
        return GateEventStage(spark, storage, position, writer)
    return LogStage(spark, pipeline, position, writer)
