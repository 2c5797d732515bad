"""The source of a declaration, for tests that know its kind."""

from __future__ import annotations

from headgate.declaration.model import Pipeline, Source
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.kafka.declared import KafkaSource


def source_of(pipeline: Pipeline) -> Source:
    (source,) = pipeline.sources.values()
    return source


def files_of(pipeline: Pipeline) -> FilesSource:
    reads = source_of(pipeline).reads
    assert isinstance(reads, FilesSource), f"{pipeline.name} does not read files"
    return reads


def kafka_of(pipeline: Pipeline) -> KafkaSource:
    reads = source_of(pipeline).reads
    assert isinstance(reads, KafkaSource), f"{pipeline.name} does not read Kafka"
    return reads
