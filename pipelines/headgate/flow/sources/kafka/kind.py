"""The kind of source that reads topics of a Kafka cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.declaration.contracts.source import Connector, Session
from headgate.declaration.kafka.section import (
    KafkaSink,
    dataset,
    option_lines,
    options_of,
    written_of,
)
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.secrets import secrets_in
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.kafka.declared import KAFKA, KafkaSource

if TYPE_CHECKING:
    from headgate.flow.sources.loading import LoadPlan, LoadWanted
    from headgate.flow.sources.micro_batches import MicroBatchSource, SourceContext
    from headgate.lake.storage.files import Storage
    from headgate.lake.tables.payloads.bronze import BronzePayload

_MOST, _LEAST = KafkaSource.max_per_batch, KafkaSource.min_per_batch


class KafkaConnector(Connector[KafkaSource]):
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
            "tombstones",
            "written",
        }
    )
    needs_jars = True
    has_tombstones = True
    why_no_gap = None
    # A topic's first records expire, so the first record is not known.
    has_known_start = False

    def build(self, section: Section, report: ProblemReport, project: Path) -> KafkaSource | None:
        servers, topic, pattern = (section.get(name) for name in ("servers", "topic", "pattern"))
        start = section.get("start")
        if start and isinstance(start.value, dict) and pattern:
            message = "offsets belong to the partitions of one topic: with pattern, write a time"
            report.at(start, message)
        least = _least(section.get("min_per_batch"), section.get("max_per_batch"), report)
        # Both keys are required; a missing one was reported.
        if servers is None or (topic is None) == (pattern is None):
            return None
        values: dict[str, Any] = {
            name: field.value
            for name, field in section.fields.items()
            if name not in ("servers", "topic", "pattern", "start", "min_per_batch", "options")
        }
        return KafkaSource(
            servers=servers.text,
            topic=topic.text if topic else None,
            pattern=pattern.text if pattern else None,
            start=start.value if start else "earliest",
            min_per_batch=least,
            options=options_of(section),
            written=written_of(section),
            **values,
        )

    def plan(self, reads: KafkaSource) -> dict[str, Any]:
        """Values with placeholders are shown as the declaration writes them, and client properties
        by name only."""
        named = {"topic": reads.topic} if reads.pattern is None else {"pattern": reads.pattern}
        places = {"servers": reads.servers, **named, "start": _start(reads)}
        return {
            **(places | {name: text for name, text in reads.written.items() if name in places}),
            "max_per_batch": reads.max_per_batch,
            "min_per_batch": reads.min_per_batch,
            "batch_target": format_duration(reads.batch_target),
            "idle_after": format_duration(reads.idle_after),
            "unreachable_after": format_duration(reads.unreachable_after),
            "isolation": reads.isolation,
            "tombstones": reads.tombstones,
            "options": sorted(reads.options),
        }

    def lines(self, planned: Mapping[str, Any]) -> list[str]:
        topic, start = planned.get("topic"), planned["start"]
        what = f"topics like {planned['pattern']}" if topic is None else f"topic {topic}"
        if isinstance(start, dict):
            start = ", ".join(f"{offset} of {partition}" for partition, offset in start.items())
        least, most = planned["min_per_batch"], planned["max_per_batch"]
        return [
            f"  kafka    {what} at {planned['servers']}, {planned['isolation']}, from {start}",
            f"  batch    at most {most} records, down to {least} if a batch takes longer than "
            f"{planned['batch_target']}",
            f"  idle     a partition after {planned['idle_after']}",
            f"  wait     run --once: {planned['unreachable_after']} for brokers that do not answer",
            *(["  ignored  tombstones"] if planned["tombstones"] == "ignore" else []),
            *option_lines(planned),
        ]

    def ignores_tombstones(self, reads: KafkaSource) -> bool:
        return reads.tombstones == "ignore"

    def unreachable_after(self, reads: KafkaSource) -> timedelta:
        return reads.unreachable_after

    def secrets(self, reads: KafkaSource) -> Iterable[str]:
        return secrets_in(reads.options)

    def datasets(self, reads: KafkaSource) -> Iterable[tuple[str, str]]:
        return (dataset(reads.servers, reads.topic or reads.pattern or ""),)

    def would_read(self, section: Section, sink: object) -> bool:
        """Two lists of servers with a common broker belong to the same cluster."""
        if not isinstance(sink, KafkaSink):
            return False
        servers = (section.text("servers") or "").split(",")
        if not set(servers) & set(sink.servers.split(",")):
            return False
        pattern = section.text("pattern")
        if pattern is not None:
            return re.fullmatch(pattern, sink.topic) is not None
        return section.text("topic") == sink.topic

    def gone(
        self,
        place: DeployedSource,
        offsets: Mapping[str, int],
        topics: Sequence[str],
        session: Session,
    ) -> str | None:
        from headgate.flow.sources.kafka.losses import gone_offsets

        return gone_offsets(place.source.reads, offsets, topics, session)

    def plan_load(
        self,
        place: DeployedSource,
        wanted: LoadWanted,
        folder: Storage,
        session: Session,
        now: datetime,
    ) -> LoadPlan:
        from headgate.flow.sources.kafka.loading import plan_load

        with session() as spark:
            return plan_load(place, wanted, spark)

    def loading(
        self, context: SourceContext, at: BronzePayload, plan: LoadPlan, folder: Storage
    ) -> MicroBatchSource[Any]:
        from headgate.flow.sources.kafka.loading import KafkaLoad

        return KafkaLoad(context, at, plan)

    def micro_batches(self, context: SourceContext, at: BronzePayload) -> MicroBatchSource[Any]:
        from headgate.flow.sources.kafka.micro_batches import KafkaMicroBatches

        return KafkaMicroBatches(context, at)


def _least(least: Field | None, most: Field | None, report: ProblemReport) -> int:
    limit = most.value if most else _MOST
    if least is None:
        return min(_LEAST, limit)
    if least.value > limit:
        given = most.shown if most else f"{_MOST}, its default"
        report.at(least, f"min_per_batch ({least.shown}) is more than max_per_batch ({given})")
    return int(least.value)


def _start(source: KafkaSource) -> Any:
    start = source.start
    if isinstance(start, datetime):
        return start.isoformat().replace("+00:00", "Z")
    if isinstance(start, Mapping):
        return {str(partition): offset for partition, offset in start.items()}
    return start
