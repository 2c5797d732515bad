"""The document of a savepoint. It covers the source, bronze, and every table built from bronze."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from headgate.declaration.contracts.operation import OPERATIONS
from headgate.declaration.kinds import BRONZE, RECORDS, kind_of, name_of
from headgate.history.savepoints.resets import BatchIdentity, ResetTarget, is_of_lineage
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.decisions import Decisions
from headgate.lake.tables.engine import engine
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.snapshot import ConsistentSnapshot, TablePosition, inputs_of


@dataclass(frozen=True)
class SavedTable:
    """A table's version, its position, and the digest of its live files. ``inputs`` are the batch
    ids of its sources if it has those of an input log."""

    version: int
    n: int
    generation: int
    files: str
    definition: str
    rows: int
    bytes: int
    inputs: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(at: TablePosition) -> SavedTable:
        # From the live files, not from Headgate's last commit: an OPTIMIZE may have followed it.
        files = live_files(at.handle)
        return SavedTable(
            version=at.version,
            n=at.n,
            generation=at.state.generation,
            files=digest_of(files),
            definition=at.state.definition,
            rows=sum(f.rows for f in files),
            bytes=sum(f.size for f in files),
            inputs=dict(inputs_of(at.state)),
        )

    @property
    def target(self) -> ResetTarget:
        return ResetTarget(self.version, self.files)

    @property
    def batch(self) -> BatchIdentity:
        """The last batch that the table has processed."""
        return BatchIdentity(self.generation, self.n)


@dataclass(frozen=True)
class SavedSource:
    """``n`` is the batch id up to which all tables of a source have processed its bronze, which may
    be ahead. ``offsets`` and ``topics`` are as in ``BronzePayload``. ``watermark`` and ``clocks``
    (watermarks of partitions) are microseconds since 1970 UTC."""

    n: int
    offsets: Mapping[str, int]
    clocks: Mapping[str, int]
    watermark: int | None
    topics: Sequence[str]

    @staticmethod
    def of(bronze: TablePosition, n: int) -> SavedSource:
        payload = BronzePayload.of(bronze.state)
        return SavedSource(
            n,
            dict(payload.offsets),
            dict(payload.clocks),
            payload.watermark,
            tuple(payload.topics),
        )


@dataclass(frozen=True)
class Savepoint:
    """``sources`` has what it records of each source, by name. ``decision`` is the number of the
    last decision before it. ``definition`` is the digest under which the declaration is kept
    (``history.savepoints.declarations``)."""

    id: str
    pipeline: str
    created: datetime
    note: str
    generation: int
    decision: int
    definition: str
    sources: Mapping[str, SavedSource]
    tables: Mapping[str, SavedTable]
    engine: str

    @staticmethod
    def of(
        snapshot: ConsistentSnapshot,
        pipeline: str,
        definition: str,
        now: datetime,
        *,
        note: str = "",
    ) -> Savepoint:
        reached = snapshot.n
        return Savepoint(
            id=f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z-{sum(reached.values())}",
            pipeline=pipeline,
            created=now,
            note=note,
            generation=snapshot.decisions.generation,
            decision=snapshot.decision,
            definition=definition,
            sources={
                name: SavedSource.of(at, reached[name]) for name, at in snapshot.bronze.items()
            },
            tables={path: SavedTable.of(at) for path, at in snapshot.tables.items()},
            engine=engine(),
        )

    @property
    def rows(self) -> int:
        return sum(t.rows for t in self._data.values())

    @property
    def bytes(self) -> int:
        return sum(t.bytes for t in self._data.values())

    @property
    def bronze(self) -> dict[str, SavedTable]:
        """The bronze tables, by source."""
        return {name_of(p): t for p, t in self.tables.items() if kind_of(p) == BRONZE}

    @property
    def numbering(self) -> dict[str, SavedTable]:
        """The bronze tables, by source, and the input logs."""
        return {name_of(p): t for p, t in self.tables.items() if kind_of(p).numbers_batches}

    @property
    def _data(self) -> dict[str, SavedTable]:
        return {p: t for p, t in self.tables.items() if kind_of(p) in RECORDS}

    def targets(self) -> dict[str, ResetTarget]:
        """The reset targets of a restore that leaves bronze: all tables that are built from it. An
        input log stays, too, because later decisions have a place in it."""
        found = ((path, kind_of(path)) for path in self.tables)
        return {p: self.tables[p].target for p, k in found if k.is_built and not k.numbers_batches}

    def is_of_lineage(self, decisions: Decisions, sources: Collection[str] | None = None) -> bool:
        """Whether bronze of some sources (None: of all) still has every batch that the tables of
        the savepoint had processed."""
        return all(
            is_of_lineage(decisions, source, saved.batch)
            for source, saved in self.numbering.items()
            if sources is None or source in sources
        )

    def document(self) -> dict[str, Any]:
        content = asdict(self) | {"created": self.created.isoformat()}
        return content | {"digest": _digest(content)}

    @staticmethod
    def from_document(content: Mapping[str, Any]) -> Savepoint:
        """Raises ValueError, KeyError or TypeError if the document is damaged."""
        saved = {k: v for k, v in content.items() if k not in ("digest", "schema")}
        if _digest(saved) != content["digest"]:
            raise ValueError("its content does not match its digest")
        tables = {path: SavedTable(**table) for path, table in saved["tables"].items()}
        sources = {
            name: SavedSource(**{**source, "topics": tuple(source["topics"])})
            for name, source in saved["sources"].items()
        }
        created = datetime.fromisoformat(saved["created"])
        return Savepoint(**saved | {"tables": tables, "sources": sources, "created": created})


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def operation_files(decisions: Decisions, savepoint: Savepoint) -> Iterator[str]:
    """The files beside the tables, in the pipeline's folder, that the operations of a savepoint
    read."""
    for each in decisions.until(savepoint.decision).operations:
        if (kind := OPERATIONS.get(each.kind)) is not None:
            yield from kind.files(each.document)
