"""The document of a savepoint. It covers the source, bronze, and every table built from bronze."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from headgate.declaration.contracts.operation import OPERATIONS
from headgate.declaration.kinds import BRONZE, RECORDS, kind_of
from headgate.history.savepoints.resets import ResetTarget
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.engine import engine
from headgate.lake.tables.history import lineage
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.snapshot import ConsistentSnapshot, TablePosition
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class SavedTable:
    """A table's version, its position, and the digest of its live files."""

    version: int
    n: int
    generation: int
    files: str
    definition: str
    rows: int
    bytes: int

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
        )

    @property
    def target(self) -> ResetTarget:
        return ResetTarget(self.version, self.files)


@dataclass(frozen=True)
class Savepoint:
    """``n`` is the batch id up to which all tables have processed bronze; bronze may be ahead.
    ``watermark`` and ``clocks`` (watermarks of partitions) are microseconds since 1970 UTC.
    ``definition`` is the digest under which the declaration is kept
    (``history.savepoints.declarations``)."""

    id: str
    pipeline: str
    created: datetime
    note: str
    n: int
    generation: int
    definition: str
    offsets: Mapping[str, int]
    clocks: Mapping[str, int]
    watermark: int | None
    topics: tuple[str, ...]
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
        state, n = snapshot.head.state, min(snapshot.n.values())
        bronze = BronzePayload.of(state)
        return Savepoint(
            id=f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z-{n}",
            pipeline=pipeline,
            created=now,
            note=note,
            n=n,
            generation=state.generation,
            definition=definition,
            offsets=dict(bronze.offsets),
            clocks=dict(bronze.clocks),
            watermark=bronze.watermark,
            topics=tuple(bronze.topics),
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
    def bronze(self) -> SavedTable:
        return next(t for path, t in self.tables.items() if kind_of(path) == BRONZE)

    @property
    def _data(self) -> dict[str, SavedTable]:
        return {p: t for p, t in self.tables.items() if kind_of(p) in RECORDS}

    def targets(self) -> dict[str, ResetTarget]:
        """The reset targets of a restore: all tables that are built from bronze."""
        return {p: t.target for p, t in self.tables.items() if kind_of(p).is_built}

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
        created = datetime.fromisoformat(saved["created"])
        return Savepoint(
            **saved | {"tables": tables, "created": created, "topics": tuple(saved["topics"])}
        )


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def saved_operations(layout: Layout, savepoint: Savepoint) -> Sequence[Operation]:
    """Raises LogGapError if bronze's log no longer has the savepoint's version."""
    path = next(path for path in savepoint.tables if kind_of(path) == BRONZE)
    bronze = Table(layout.storage, path, pipeline=savepoint.pipeline)
    return BronzePayload.of(next(lineage(bronze, savepoint.bronze.version)).state).operations


def operation_files(layout: Layout, savepoint: Savepoint) -> Iterator[str]:
    """The files beside the tables, in the pipeline's folder. Raises as :func:`operations_of`."""
    for each in saved_operations(layout, savepoint):
        if (kind := OPERATIONS.get(each.name)) is not None:
            yield from kind.files(each.document)
