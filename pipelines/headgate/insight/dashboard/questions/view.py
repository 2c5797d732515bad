"""A table as questions see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable
from headgate.insight.dashboard.questions.facts import Facts, facts
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.reading.engine import Row
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.reading.versions import Version


@dataclass(frozen=True, eq=False)
class TableView:
    """One version of a table, which queries call ``called``."""

    called: ClassVar[str] = "t"
    reader: Reader
    version: Version

    @property
    def types(self) -> dict[str, str]:
        """DuckDB's types of the columns."""
        return self.reader.types(self.version)

    def ask(self, sql: str, parameters: Sequence[object], columns: Sequence[str]) -> Sequence[Row]:
        """The rows that a query returns, which reads these columns. Raises TooMuchError,
        BadQuestionError, ChangedTableError."""
        return self.reader.ask(sql, parameters, **{self.called: (self.version, columns)}).rows


@dataclass(frozen=True, eq=False)
class GoldView(TableView):
    called: ClassVar[str] = "gold"
    shown: Shown
    table: GoldTable

    @staticmethod
    def of(reader: Reader, shown: Shown, name: str) -> GoldView:
        """The newest version. Raises NotFoundError if there is none."""
        table = shown.gold(name)
        return GoldView(reader, shown.existing(GOLD.path(name)), shown, table)

    @cached_property
    def facts(self) -> Facts:
        return facts(self.table)
