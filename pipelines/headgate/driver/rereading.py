"""Checks whether a source still has all input after a position of bronze. Only then can bronze be
reset to that position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import graph_of
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
    gone = what_is_gone(layout, pipeline, savepoint.offsets, savepoint.topics, jars)
    if gone is not None:
        raise SavepointError(
            f"the source no longer has everything after savepoint {savepoint.id}: {gone}",
            remedy="restore without --reread, so that bronze stays: "
            + pipeline_command("savepoint restore", savepoint.id),
        )


def what_is_gone(
    layout: Layout,
    pipeline: Pipeline,
    offsets: Mapping[str, int],
    topics: Sequence[str],
    jars: Sequence[Path] = (),
) -> str | None:
    """A message about the input after ``offsets`` of ``topics`` (as in ``BronzePayload``) that the
    source no longer has; None if it has everything. For Kafka this starts a JVM: it takes seconds.
    """

    def spark() -> AbstractContextManager[SparkSession]:
        from headgate.driver.session import passing_session

        return passing_session("headgate-rereading", 1, jars)

    source = pipeline.sources[graph_of(pipeline).head.name]
    place = DeployedSource(layout.storage, pipeline.name, source)
    return connector_of(source).gone(place, offsets, topics, spark)
