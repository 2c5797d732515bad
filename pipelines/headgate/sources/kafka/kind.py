"""The kind of source that reads topics of a Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.declaration.reading.checked import Report, Section
from headgate.declaration.secrets import secrets_in
from headgate.sinks.kafka.declared import KafkaSink
from headgate.sources.contract import Connector, DeployedSource, Session
from headgate.sources.kafka.declared import KafkaSource
from headgate.sources.kafka.keys import KAFKA
from headgate.sources.kafka.plan import planned_source, source_lines
from headgate.sources.kafka.section import build_kafka, would_read

if TYPE_CHECKING:
    from datetime import datetime

    from headgate.sources.loading import LoadPlan, LoadWanted
    from headgate.sources.micro_batches import MicroBatchSource, SourceContext
    from headgate.storage.files import Storage


class Kafka(Connector[KafkaSource]):
    key = KAFKA
    title = "Kafka"
    place = "topic"
    not_meant = frozenset(
        {
            "servers",
            "options",
            "max_per_batch",
            "min_per_batch",
            "batch_target",
            "unreachable_after",
            "written",
        }
    )
    needs_jars = True
    is_remote = True
    why_no_gap = None
    # A topic's first records expire, so the first record is not known.
    has_known_start = False

    def build(self, section: Section, report: Report, project: Path) -> KafkaSource | None:
        return build_kafka(section, report)

    def plan(self, reads: KafkaSource) -> dict[str, Any]:
        return planned_source(reads)

    def lines(self, planned: Mapping[str, Any]) -> list[str]:
        return source_lines(planned)

    def secrets(self, reads: KafkaSource) -> Iterable[str]:
        return secrets_in(reads.options)

    def datasets(self, reads: KafkaSource) -> Iterable[tuple[str, str]]:
        first = reads.servers.partition(",")[0].strip()
        return ((f"kafka://{first}", reads.topic or reads.pattern or ""),)

    def would_read(self, section: Section, sink: object) -> bool:
        return isinstance(sink, KafkaSink) and would_read(section, sink)

    def gone(
        self,
        place: DeployedSource,
        offsets: Mapping[str, int],
        topics: Sequence[str],
        session: Session,
    ) -> str | None:
        from headgate.sources.kafka.rereading import gone_offsets

        return gone_offsets(place.source.reads, offsets, topics, session)

    def plan_load(
        self,
        place: DeployedSource,
        wanted: LoadWanted,
        folder: Storage,
        session: Session,
        now: datetime,
    ) -> LoadPlan:
        from headgate.sources.kafka.loading import plan_load

        with session() as spark:
            return plan_load(place, wanted, spark)

    def loading(self, context: SourceContext, plan: LoadPlan, folder: Storage) -> MicroBatchSource:
        from headgate.sources.kafka.loading import KafkaLoad

        return KafkaLoad(context, plan)

    def micro_batches(self, context: SourceContext) -> MicroBatchSource:
        from headgate.sources.kafka.micro_batches import KafkaMicroBatches

        return KafkaMicroBatches(context)
