"""A toy source: numbered records in one JSON document.

A record's number is its place among all records that the document ever had. The document may drop
the first ones:
``{"first": 2, "records": [{"at": "2026-03-01T12:00:00+00:00", "value": "…"}]}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.declaration.contracts.source import Connector, Session
from headgate.declaration.keys.key import Key
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.micro_batches import (
    BatchEnd,
    MicroBatchSource,
    SourceBatch,
    SourceContext,
)
from headgate.flow.sources.records import PartedRecords, RecordsInMemory
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.record_shape import record_schema


@dataclass(frozen=True)
class Numbers:
    path: str
    password: str = ""
    most: int = 10


@dataclass(frozen=True)
class Document:
    """``records`` are those from number ``first`` on."""

    first: int
    records: Sequence[Mapping[str, str]]

    @staticmethod
    def of(path: str) -> Document:
        content = json.loads(Path(path).read_text()) if Path(path).exists() else {}
        return Document(content.get("first", 0), content.get("records", []))

    @property
    def end(self) -> int:
        return self.first + len(self.records)

    def between(self, start: int, end: int) -> Sequence[Mapping[str, str]]:
        """The records [start, end). Raises SourceError if the document does not have them."""
        if start < self.first or end > self.end:
            raise SourceError(f"records {start} to {end - 1} are gone", "put them back")
        return self.records[start - self.first : end - self.first]


class NumbersKind(Connector[Numbers]):
    key = Key(
        "numbers",
        "section",
        "Numbered records in one JSON document.",
        children=(
            Key("path", "text", "The document.", required=True, deployment=True),
            Key("password", "text", "Of no use.", default="none", deployment=True),
            Key("most", "integer", "In one batch.", default="10", low=1, high=1000),
        ),
    )
    title = "numbers"
    place = "document"
    not_meant = frozenset({"path", "password", "most"})

    def build(self, section: Section, report: ProblemReport, project: Path) -> Numbers | None:
        path = section.get("path")
        if path is None:
            return None
        if not path.text.endswith(".json"):
            report.at(path, "is not the name of a JSON document")
        return Numbers(str(project / path.text), **section.values("password", "most"))

    def plan(self, reads: Numbers) -> dict[str, Any]:
        return {"path": reads.path, "most": reads.most}

    def lines(self, planned: Mapping[str, Any]) -> list[str]:
        return [f"  numbers  {planned['path']}, at most {planned['most']} in a batch"]

    def secrets(self, reads: Numbers) -> Iterable[str]:
        return [reads.password] if reads.password else []

    def require_input(self, place: DeployedSource, declaration: Path) -> None:
        path = place.source.reads.path
        if not Path(path).exists():
            remedy = f"write it, or correct its path in {declaration}"
            raise SourceError(f"there is no document {path} yet", remedy)

    def require_unchanged(self, place: DeployedSource, offsets: Mapping[str, int]) -> None:
        if why := self._gone(place, offsets):
            raise SourceError(why, "put them back")

    def gone(
        self,
        place: DeployedSource,
        offsets: Mapping[str, int],
        topics: Sequence[str],
        session: Session,
    ) -> str | None:
        return self._gone(place, offsets)

    def missing(self, place: DeployedSource) -> str | None:
        return self._gone(place, {})

    def micro_batches(self, context: SourceContext, at: BronzePayload) -> MicroBatchSource[Any]:
        return NumbersMicroBatches(context)

    def _gone(self, place: DeployedSource, offsets: Mapping[str, int]) -> str | None:
        first, after = Document.of(place.source.reads.path).first, offsets.get("number", 0)
        return f"the document begins at {first}, and {after} is next" if first > after else None


class NumbersMicroBatches(MicroBatchSource[range]):
    every = 0.25

    def __init__(self, context: SourceContext) -> None:
        self._reads: Numbers = context.source.reads
        self._end = 0

    def poll(self, at: BronzePayload, *, final: bool) -> None:
        self._end = max(self._end, Document.of(self._reads.path).end)

    def pending(self, at: BronzePayload) -> int:
        return math.ceil(len(self._unread(at)) / self._reads.most)

    def backlog(self, at: BronzePayload) -> Backlog:
        return Backlog("records", len(self._unread(at)))

    def next_range(self, at: BronzePayload) -> range | None:
        return self._unread(at)[: self._reads.most] or None

    def read(self, planned: range, now: datetime) -> SourceBatch:
        records = self._between(planned)

        def verify() -> None:
            if self._between(planned) != records:
                raise SourceError("the document was rewritten", "put it back")

        rows = [
            {"value": r["value"].encode(), "partition": 0, "offset": number}
            | {"document": self._reads.path, "ingested_at": at, "seen_at": at}
            for number, r in zip(planned, records, strict=True)
            for at in (datetime.fromisoformat(r["at"]),)
        ]
        table = pa.Table.from_pylist(rows, record_schema("document"))
        end = BatchEnd({"number": planned.stop})
        return SourceBatch(PartedRecords([RecordsInMemory(table)]), end, verify)

    def _unread(self, at: BronzePayload) -> range:
        return range(at.offsets.get("number", 0), self._end)

    def _between(self, planned: range) -> Sequence[Mapping[str, str]]:
        return Document.of(self._reads.path).between(planned.start, planned.stop)


MEMBER = NumbersKind()
