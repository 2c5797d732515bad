"""Whether a source still holds everything behind a position of bronze, so that bronze may go back
there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.declaration.model import Pipeline
from headgate.savepoints.errors import SavepointError
from headgate.savepoints.savepoint import Savepoint
from headgate.sources.files.rereadable import gone_files
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from headgate.sources.kafka.cluster import Cluster


def require_source(
    layout: Layout, pipeline: Pipeline, savepoint: Savepoint, jars: Sequence[Path] = ()
) -> None:
    """Raises SavepointError if something behind the savepoint cannot be read again. Asking a
    Kafka cluster takes a JVM and seconds."""
    gone = what_is_gone(layout, pipeline, savepoint.offsets, savepoint.topics, jars)
    if gone is not None:
        raise SavepointError(
            f"the source no longer holds everything behind savepoint {savepoint.id}: {gone}",
            remedy="restore without --reread: bronze stays, and all is built again from it",
        )


def what_is_gone(
    layout: Layout,
    pipeline: Pipeline,
    offsets: Mapping[str, int],
    topics: Sequence[str],
    jars: Sequence[Path] = (),
) -> str | None:
    """What the source has no longer of all that came after ``offsets`` of ``topics`` (as ``State``
    has both), in words; None if it has everything. Asking a Kafka cluster takes a JVM and
    seconds."""
    if pipeline.source.files is not None:
        return gone_files(layout, pipeline, int(offsets.get("sequence", 0)))
    return _gone_offsets(pipeline, offsets, topics, jars)


def _gone_offsets(
    pipeline: Pipeline, offsets: Mapping[str, int], topics: Sequence[str], jars: Sequence[Path]
) -> str | None:
    from headgate.jobs import session
    from headgate.sources.kafka.cluster import Cluster

    assert pipeline.source.kafka is not None
    with tempfile.TemporaryDirectory(prefix="headgate-") as scratch:
        spark = session.start("headgate-rereading", cores=1, scratch=Path(scratch), jars=jars)
        cluster = Cluster(spark, pipeline.source.kafka)
        try:
            return gone_from(cluster, offsets, topics)
        finally:
            cluster.close()
            spark.stop()


def gone_from(cluster: Cluster, offsets: Mapping[str, int], topics: Sequence[str]) -> str | None:
    """As ``what_is_gone``, of a cluster that is connected."""
    from headgate.sources.kafka.listing import decoded
    from headgate.sources.kafka.losses import losses
    from headgate.sources.kafka.topics import enrolled, partitions

    there = cluster.topics()
    listed = partitions(enrolled(topics, there), there)
    first = cluster.offsets(listed.values(), "earliest")
    last = cluster.offsets(listed.values(), "latest")
    return "; ".join(map(str, losses(topics, decoded(offsets), listed, first, last))) or None
