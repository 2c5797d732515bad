"""A pipeline that is shown: its declaration and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from headgate.commands import Place, anywhere
from headgate.declaration.errors import DeclarationError
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, GOLD, LATE, QUARANTINE, REJECTED, SILVER
from headgate.declaration.load import load
from headgate.declaration.model import GoldTable, Pipeline
from headgate.insight.dashboard.errors import NotFoundError
from headgate.insight.dashboard.reading.versions import ReleasedVersion, WatchedTable
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table

WATCHED = (BRONZE, QUARANTINE, REJECTED, SILVER, LATE, GOLD)


@dataclass(frozen=True, eq=False)
class Shown:
    """``tables`` are those that a page may be about, by their paths; they are under ``root``."""

    pipeline: Pipeline
    root: str
    layout: Layout
    tables: Mapping[str, WatchedTable] = field(repr=False)

    @staticmethod
    def of(pipeline: Pipeline, root: str) -> Shown:
        layout = Layout.of(root, pipeline.name)
        tables = {
            node.path: WatchedTable(Table(layout.storage, node.path, pipeline=pipeline.name))
            for node in graph_of(pipeline).of(*WATCHED)
        }
        return Shown(pipeline, root, layout, tables)

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def place(self) -> Place:
        """Where commands about this pipeline are typed: the reader's shell is not known."""
        return anywhere(self.pipeline.file, self.root)

    def gold(self, name: str) -> GoldTable:
        """Raises NotFoundError."""
        if (found := self.pipeline.gold.get(name)) is None:
            known = ", ".join(self.pipeline.gold) or "none"
            raise NotFoundError(
                f"{self.name} has no gold table {name}", remedy=f"its gold tables: {known}"
            )
        return found

    def version(self, path: str) -> ReleasedVersion | None:
        found = self.tables.get(path)
        return None if found is None else found.current()

    def existing(self, path: str) -> ReleasedVersion:
        """Raises NotFoundError if there is no such table yet."""
        if (version := self.version(path)) is None:
            raise NotFoundError(
                f"{self.name} has no table {path.replace('/', '.')} yet",
                remedy="it appears with the first batch",
            )
        return version

    def numbers(self) -> tuple[tuple[str, int], ...]:
        """The path and the log version of every existing table. A version grows with each
        commit."""
        found = ((path, table.current()) for path, table in self.tables.items())
        return tuple((path, version.number) for path, version in found if version is not None)


class Declarations:
    """The current declarations of files. If a file becomes invalid, its last valid declaration is
    kept."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[int, Shown]] = {}
        self._lock = Lock()

    def shown(self, file: Path, root: str) -> Shown:
        """Raises DeclarationError if the file is invalid and no valid version of it was read
        before."""
        with self._lock:
            key, changed = (str(file), root), _changed(file)
            kept = self._kept.get(key)
            if kept is not None and kept[0] == changed:
                return kept[1]
            try:
                made = Shown.of(load(file, needs_secrets=False), root)
            except DeclarationError:
                if kept is None:
                    raise
                made = kept[1]
            self._kept[key] = changed, made
            return made


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
