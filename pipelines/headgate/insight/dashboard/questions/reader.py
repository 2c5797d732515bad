"""Answers queries over versions of tables, with caches and DuckDB."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar, cast

from headgate.commands import pipeline_command
from headgate.insight.dashboard.errors import ChangedTableError
from headgate.insight.dashboard.reading.columns import ColumnCache, Source
from headgate.insight.dashboard.reading.engine import Answer, Engine
from headgate.insight.dashboard.reading.versions import ReleasedVersion

Fact = TypeVar("Fact")
_KNOWN = 256  # facts that are kept


@dataclass(frozen=True)
class Reader:
    columns: ColumnCache = field(default_factory=ColumnCache)
    engine: Engine = field(default_factory=Engine)
    _known: OrderedDict[Hashable, tuple[Hashable, object]] = field(
        default_factory=OrderedDict, repr=False
    )
    _lock: Lock = field(default_factory=Lock, repr=False)

    def known(
        self, about: str, of: Hashable, find: Callable[[], Fact], at: Hashable = None
    ) -> Fact:
        """The result of ``find``. It is cached, because many questions need it, until it is asked
        for ``at`` another version."""
        key = (about, of)
        with self._lock:
            if (kept := self._known.get(key)) is not None and kept[0] == at:
                return cast(Fact, kept[1])
        found = find()
        with self._lock:
            self._known[key] = (at, found)
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return found

    def ask(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        /,
        **read: tuple[ReleasedVersion, Sequence[str]],
    ) -> Answer:
        """The answer of a query. ``read`` has the versions by their names in the query, each with
        the columns that are read. Raises TooMuchError, BadQuestionError, ChangedTableError."""
        return self.engine.ask(self.sources(read), sql, parameters)

    def sources(
        self, read: Mapping[str, tuple[ReleasedVersion, Sequence[str]]]
    ) -> dict[str, Source]:
        """The sources of a query. Raises ChangedTableError if a version does not have all of the
        columns."""
        for name, (version, columns) in read.items():
            if missing := [each for each in columns if each not in version.schema.names]:
                raise ChangedTableError(
                    f"the table {name} has no column {', '.join(missing)}: its declaration has "
                    "changed since",
                    remedy=f"deploy the declaration: {pipeline_command('upgrade')}",
                )
        return {
            name: self.columns.source(version, tuple(dict.fromkeys(columns)))
            for name, (version, columns) in read.items()
        }

    def types(self, version: ReleasedVersion) -> dict[str, str]:
        """DuckDB's types of the columns of a version."""

        def described() -> dict[str, str]:
            empty = version.schema.empty_table()
            rows = self.engine.ask({"t": empty}, "DESCRIBE SELECT * FROM t").rows
            return {str(row[0]): str(row[1]) for row in rows}

        return self.known("types", str(version.schema), described)
