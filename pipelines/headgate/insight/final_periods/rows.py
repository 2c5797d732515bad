"""Which final rows of a gold table have changed since a position.

Whatever changes a final row counts: a late replay, a backfill, a restore, a rebuild. The two
versions of the table are compared, so it does not matter who has made the change, or when.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.declaration.contracts.operator import bounds_of, operator_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.insight.final_periods.finality import as_computed, final_at
from headgate.insight.final_periods.periods import HOUR, Period
from headgate.insight.final_periods.progress import TableVersion
from headgate.insight.querying.sandbox import connected, quoted
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.data_file import FINAL, STATE
from headgate.lake.tables.live_files import partition_files
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    import duckdb

_STATUS = (FINAL, STATE, "revision", "updated_at")
_MICROS = 1_000_000
_HOUR = HOUR.length // timedelta(microseconds=1)
_FAR = 10**8  # hours: more than from the year 1 to 1970
_MEMORY = "1GB"
_PATTERN = re.compile(r"([\[*?])")
"""What DuckDB reads as a pattern in a path. In brackets, it is the character."""
# As in ``lake.tables.row_values``: a sum of such numbers depends on the order of its parts.
_ROUNDED = "round(sign({0}) * ln(1 + abs({0})) / 1e-9) + 0.0"


class FinalRows:
    """The final rows of the gold table ``name``."""

    def __init__(self, layout: Layout, declared: Pipeline, name: str) -> None:
        self._layout, self._pipeline, self._name = layout, declared, name
        self._declared: GoldTable = declared.gold[name]
        self._table = Table(layout.storage, GOLD.path(name), pipeline=declared.name)

    @property
    def id(self) -> str:
        """Distinguishes the table from one that replaces it after its folder was deleted."""
        return str(self._table.handle.metadata().id)

    def position(self) -> TableVersion | None:
        """The newest position; None if the table does not exist, nothing is final yet, or it is not
        known which declaration its rows were computed by. Reads one entry of the log. Raises
        HeadgateError if the table is damaged."""
        if not self._table.exists:
            return None
        state = self._table.refresh()
        made = as_computed(self._layout, self._pipeline, self._name, state)
        if made is None or (final := final_at(made, state)) is None:
            return None
        self._declared = made
        return TableVersion(
            self._table.version, state.generation, state.operation, state.at, final.isoformat()
        )

    def due(
        self, period: Period, before: TableVersion | None, upto: TableVersion
    ) -> Sequence[datetime]:
        """The starts of the periods that are due at ``upto``, if the last report was at ``before``
        (``Period.due``). If ``upto`` cannot be read any more, the newest rows count."""
        now = self._paths_at(upto.version)
        if now is None:
            self._table.refresh()
            now = self._paths(self._table.handle)
        if before is None:
            return period.due((), self._hours(now, "true"), None, upto.time)
        changed: Collection[datetime] = ()
        if (before.generation, before.operation) != (upto.generation, upto.operation):
            changed = self._changed(before, upto, now)
        began = period.whole(before.time)
        present: Collection[datetime] = ()
        if period.whole(upto.time) > began:
            # Compared as a time: DuckDB then skips files by their bounds.
            # A window that ends when a period begins is in the one before, a moment is in that one.
            beyond = ">=" if operator_of(self._declared).appends else ">"
            after = f"{self._end} {beyond} to_timestamp({int(began.timestamp())})"
            present = self._hours(now, after)
        return period.due(changed, present, before.time, upto.time)

    def _changed(
        self, before: TableVersion, upto: TableVersion, now: frozenset[str]
    ) -> Collection[datetime]:
        """The starts of the hours of which a row that was final at ``before`` has changed, is new
        or gone. ``now`` are the files at ``upto``."""
        was_final = f"{self._micros} <= {int(before.time.timestamp()) * _MICROS}"
        then = self._paths_at(before.version)
        if then is None:
            return self._corrected(before, upto, now, was_final)
        old, new = sorted(then - now), sorted(now - then)
        if not old or not new:
            return self._hours({*old, *new}, was_final)
        with _connected() as connection:
            columns = self._common_columns(connection, old, new)
            one, other = (
                f"SELECT {self._micros} AS _end, {', '.join(columns)} FROM {self._files(paths)} "
                f"WHERE {was_final}"
                for paths in (old, new)
            )
            differing = f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})"
            return _starts(connection, f"SELECT _end FROM ({differing})")

    def _corrected(
        self, before: TableVersion, upto: TableVersion, now: Collection[str], was_final: str
    ) -> Collection[datetime]:
        """As ``_changed``, if ``before`` cannot be read any more: the hours of the rows that were
        written since, by their own ``updated_at``; after a reset, which brings old rows back, all
        hours."""
        if upto.generation != before.generation:
            return self._hours(now, was_final)
        return self._hours(now, f"{was_final} AND epoch_us(updated_at) > {before.at}")

    def _hours(self, paths: Collection[str], where: str) -> Collection[datetime]:
        if not paths:
            return ()
        with _connected() as connection:
            found = f"SELECT {self._micros} AS _end FROM {self._files(paths)} WHERE {where}"
            return _starts(connection, found)

    @property
    def _end(self) -> str:
        """The column with the end of a result, or with its only time."""
        return quoted(bounds_of(self._declared)[-1])

    @property
    def _micros(self) -> str:
        """The end of a result. One that has a single time ends with this microsecond."""
        return f"epoch_us({self._end}) + {int(operator_of(self._declared).appends)}"

    def _paths_at(self, version: int) -> frozenset[str] | None:
        """The files of a version; None if the log, or a file, is not there any more."""
        if version > self._table.version:
            return None
        try:
            paths = self._paths(DeltaTable(self._table.log.uri(), version=version))
        except DeltaError:
            return None
        return paths if all(self._table.storage.exists(path) for path in paths) else None

    @staticmethod
    def _paths(handle: DeltaTable) -> frozenset[str]:
        return frozenset(file.path for file in partition_files(handle, FINAL, True))

    def _files(self, paths: Collection[str]) -> str:
        uris = (_PATTERN.sub(r"[\1]", self._table.storage.uri(path)) for path in sorted(paths))
        listed = ", ".join("'" + uri.replace("'", "''") + "'" for uri in uris)
        return f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"

    def _common_columns(
        self, connection: duckdb.DuckDBPyConnection, old: Collection[str], new: Collection[str]
    ) -> list[str]:
        """The columns of both sides whose values are compared, as expressions. No reader has seen
        other values in a column that only one side has."""
        before, after = (
            {
                name: str(type_)
                for name, type_, *_ in connection.execute(
                    f"DESCRIBE SELECT * FROM {self._files(paths)}"
                ).fetchall()
            }
            for paths in (old, new)
        )
        names = [name for name in after if name in before and name not in _STATUS]
        return [_value(name, before[name], after[name]) for name in names]


def _value(name: str, before: str, after: str) -> str:
    """A column in a form that can be compared, although it may have had another type ``before``."""
    column = quoted(name)
    if before == after:
        return _ROUNDED.format(column) if after in ("DOUBLE", "FLOAT") else column
    # Fields may have been added to structs. In older rows, readers see null in these.
    is_nested = "STRUCT(" in before and "STRUCT(" in after
    return f"TRY_CAST({column} AS {after})" if is_nested else f"CAST({column} AS VARCHAR)"


def _connected() -> duckdb.DuckDBPyConnection:
    return connected(threads=1, memory_limit=_MEMORY, temp_directory=tempfile.gettempdir())


def _starts(connection: duckdb.DuckDBPyConnection, ends: str) -> Collection[datetime]:
    """The starts of the hours of some ends of results, which a query has as ``_end``."""
    # The operator // rounds towards 0, and hours before 1970 are negative.
    shifted = f"(_end - 1 + {_FAR * _HOUR}) // {_HOUR} - {_FAR}"
    counted = f"SELECT DISTINCT {shifted} FROM ({ends})"
    return {
        datetime.fromtimestamp(hour * _HOUR // _MICROS, UTC)
        for (hour,) in connection.execute(counted).fetchall()
    }
