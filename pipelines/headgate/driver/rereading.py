"""Checks whether a source still has all input after a position of bronze. Only then can bronze be
reset to that position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Pipeline
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_source(
    layout: Layout, pipeline: Pipeline, savepoint: Savepoint, jars: Sequence[Path] = ()
) -> None:
    """Raises SavepointError if some input after the savepoint cannot be read again. For Kafka this
    starts a JVM and takes seconds."""
    for name, saved in savepoint.sources.items():
        if name not in pipeline.sources:
            continue
        gone = what_is_gone(layout, pipeline, name, saved.offsets, saved.topics, jars)
        if gone is not None:
            which = "the source" if len(pipeline.sources) == 1 else name
            raise SavepointError(
                f"{which} no longer has everything after savepoint {savepoint.id}: {gone}",
                remedy="restore without --reread, so that bronze stays: "
                + pipeline_command("savepoint restore", savepoint.id),
            )


def what_is_gone(
    layout: Layout,
    pipeline: Pipeline,
    source: str,
    offsets: Mapping[str, int],
    topics: Sequence[str],
    jars: Sequence[Path] = (),
) -> str | None:
    """A message about the input of a source after ``offsets`` of ``topics`` (as in
    ``BronzePayload``) that it no longer has; None if it has everything. For Kafka this starts a
    JVM: it takes seconds."""

    def spark() -> AbstractContextManager[SparkSession]:
        from headgate.driver.session import passing_session

        return passing_session("headgate-rereading", 1, jars)

    declared = pipeline.sources[source]
    place = DeployedSource(layout.storage, pipeline.name, declared)
    return connector_of(declared).gone(place, offsets, topics, spark)
