"""The refused records of a source: those in quarantine, and those that a rule has rejected.

Reads tables with DuckDB; no JVM is started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import QUARANTINE, REJECTED, SILVER
from headgate.declaration.model import Pipeline, Source
from headgate.declaration.names import SILVER_POSITION
from headgate.flow.silver.copies import Copy, Earlier
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.damage import naming_damage
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.replay import RecordPosition, positions_table, sql_of_log
from headgate.lake.tables.snapshot import (
    TablePosition,
    corrections,
    corrections_table,
    newest,
    tables_of,
)


@dataclass(frozen=True)
class RefusedSelection:
    """Selects the refused records that meet all conditions that are given. ``table`` is
    ``quarantine`` or ``rejected.T``. ``since`` and ``until`` are times of ingestion, ``until`` is
    exclusive. ``with_replaced`` also selects records that have a good copy in the tables."""

    table: str | None = None
    rule: str | None = None
    reason: str | None = None
    event_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    with_replaced: bool = False

    @property
    def condition(self) -> tuple[str, list[Any]]:
        """SQL over the columns of ``RefusedRecord``, and its parameters."""
        given: dict[str, Any] = {
            '"table" = ?': self.table,
            "\"table\" <> 'quarantine' AND list_contains(reasons, ?)": self.rule,
            "\"table\" = 'quarantine' AND list_contains(reasons, ?)": self.reason,
            "event_id = ?": self.event_id,
            "ingested_at >= ?": self.since,
            "ingested_at < ?": self.until,
        }
        asked = {sql: value for sql, value in given.items() if value is not None}
        if not self.with_replaced:
            asked["is_open = ?"] = True
        return " AND ".join(f"({sql})" for sql in asked) or "true", list(asked.values())


@dataclass(frozen=True)
class RefusedRecord:
    """A refused record. ``reasons`` is the reason for quarantine, or the ids of all broken rules.
    ``where`` is its file or topic. ``is_open`` says whether no good copy of it is in the tables.
    ``value`` is None for a record that has no value at the broker. ``items`` are the places of the
    rejected items, if the table explodes an array; ``reasons`` are those of these items. They are
    the items without a good copy, if there is one."""

    table: str
    partition: int
    offset: int
    event_id: str | None
    event_time: datetime | None
    reasons: Sequence[str]
    column: str | None
    detail: str | None
    where: str | None
    ingested_at: datetime
    value: bytes | None
    is_open: bool
    items: Sequence[int] = ()

    @property
    def position(self) -> RecordPosition:
        return RecordPosition(self.partition, self.offset)

    @property
    def is_valid(self) -> bool:
        """Whether the record is valid in bronze, and only a rule has refused it."""
        return self.table != QUARANTINE.name


@dataclass(frozen=True)
class RefusedGroup:
    """Refused records with one reason, or that break one rule."""

    table: str
    reason: str
    open: int
    replaced: int
    newest: datetime


class RefusedRecords:
    """The refused records of one source as of the newest commits. Raises HeadgateError if the
    pipeline has no tables, DamagedFileError."""

    def __init__(self, layout: Layout, pipeline: Pipeline, source: Source) -> None:
        import duckdb

        self._layout, self._pipeline = layout, pipeline
        # Read before the tables: so a later replay or reset makes a request of these records void.
        self._decisions = ControlTable.of(layout.storage, pipeline.name).refresh()
        self._at = newest(layout, pipeline)
        self.source = source
        self.bronze = self._at.bronze[source.name]
        self._silver = [n for n, table in pipeline.silver.items() if table.source == source.name]
        self._sql = duckdb.connect(config={"python_enable_replacements": False})
        self._sql.execute("SET TimeZone = 'UTC'")
        self._corrections = corrections(self.bronze)
        self._sql.register("copies", corrections_table(self._corrections))
        rejected = (name for name in self._silver if name in self._at.rejected)
        parts = [self._quarantine(), *map(self._rejected, rejected)]
        self._sql.execute(f"CREATE TEMP VIEW refused AS {' UNION ALL '.join(parts)}")

    @property
    def behind(self) -> list[str]:
        """The silver tables that have not processed all of bronze: a replay may not have reached
        them."""
        n, silver = self.bronze.n, self._at.silver
        return [f"{SILVER.name}.{name}" for name in self._silver if silver[name].n < n]

    @property
    def generation(self) -> int:
        """That of the last reset before these records."""
        return self._decisions.generation

    @property
    def replays(self) -> int:
        """The number of replays that bronze had ingested."""
        replays, done = self._decisions.replays_of(self.source.name), self.bronze.state.operation
        return sum(each.number <= done for each in replays)

    def groups(self, selection: RefusedSelection) -> list[RefusedGroup]:
        """The counts by table and reason. A record that breaks several rules is in several
        groups."""
        where, values = selection.condition
        counted = self._rows(
            'SELECT "table", reason, count(*) FILTER (is_open), count(*) FILTER (NOT is_open), '
            "max(ingested_at) FROM (SELECT *, unnest(reasons) AS reason FROM refused "
            f"WHERE {where}) GROUP BY ALL ORDER BY 1, 3 DESC, 2",
            values,
        )
        return [RefusedGroup(*row) for row in counted]

    def rows(self, selection: RefusedSelection, limit: int | None = None) -> list[RefusedRecord]:
        """The records in the order of the log."""
        where, values = selection.condition
        most = "" if limit is None else f" LIMIT {limit:d}"
        order = 'ORDER BY partition, "offset", "table"'
        found = self._rows(f"SELECT * FROM refused WHERE {where} {order}{most}", values)
        return [RefusedRecord(*row) for row in found]

    def _rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        layout, name = self._layout, self._pipeline.name
        with naming_damage(lambda: tables_of(layout, name)):
            return self._sql.execute(sql, values).fetchall()

    def headers(self, positions: Iterable[RecordPosition]) -> dict[RecordPosition, tuple[Any, Any]]:
        """The broker's key and headers of some records in bronze."""
        self._sql.register("wanted", positions_table(positions))
        self._register("bronze", self.bronze)
        found = self._sql.execute(
            'SELECT partition, "offset", key, headers FROM bronze SEMI JOIN wanted '
            'USING (partition, "offset")'
        )
        return {RecordPosition(*row[:2]): (row[2], row[3]) for row in found.fetchall()}

    def copies_in(self, name: str, ids: Collection[str]) -> tuple[Earlier, Earlier]:
        """The open rejected rows of a silver table that have one of these ids, and the rows of the
        table that have one of them."""
        import pyarrow as pa

        self._sql.register("ids", pa.table({"wanted_id": pa.array(sorted(ids), pa.string())}))
        self._register(f"silver_{name}", self._at.silver[name])
        refused = f"""
            SELECT event_id, partition, "offset", epoch_us(event_time),
                   unnest(if(items = [], [0], items))
            FROM refused SEMI JOIN ids ON event_id = wanted_id
            WHERE "table" = '{REJECTED.name}.{name}' AND is_open
        """
        held = f"""
            SELECT _event_id, {", ".join(SILVER_POSITION)}, epoch_us(_event_time), _item
            FROM "silver_{name}" SEMI JOIN ids ON _event_id = wanted_id
        """
        open_, kept = (self._sql.execute(sql).fetchall() for sql in (refused, held))
        return self._earlier(open_), self._earlier(kept)

    def _earlier(self, rows: Iterable[tuple[Any, ...]]) -> Earlier:
        within = self.source.record.one_copy_within
        reach = None if within is None else within // timedelta(microseconds=1)
        return Earlier(
            reach,
            (Copy(id_, RecordPosition(*at), time, item=item) for id_, *at, time, item in rows),
        )

    def origin(self, position: RecordPosition) -> RecordPosition:
        """The record of the source of which a record is a copy; the record itself if it is none."""
        while position in self._corrections:
            position = self._corrections[position]
        return position

    def _quarantine(self) -> str:
        self._register("quarantine", self._at.quarantine[self.source.name])
        place = connector_of(self.source).place
        return f"""
            SELECT 'quarantine' AS "table", q.partition, q."offset", event_id, event_time,
                   [reason] AS reasons, "column", detail, "{place}" AS place, ingested_at, value,
                   NOT EXISTS (SELECT 1 FROM copies c WHERE (c.of_partition, c.of_offset)
                               = (q.partition, q."offset")) AS is_open, []::INTEGER[] AS items
            FROM quarantine q
        """

    def _rejected(self, name: str) -> str:
        self._register(f"rejected_{name}", self._at.rejected[name])
        place = connector_of(self.source).place
        rows = f"""
            SELECT 'rejected.{name}' AS "table", partition, "offset", event_id, event_time,
                   list_transform(rules, lambda rule: rule.id) AS reasons, NULL AS "column",
                   NULL AS detail, "{place}" AS place, ingested_at, value,
                   {self._is_open(name)} AS is_open
        """
        if self._pipeline.silver[name].explode is None:
            return f'{rows}, []::INTEGER[] AS items FROM "rejected_{name}" r'
        return f"""
            SELECT "table", partition, "offset", any_value(event_id), any_value(event_time),
                   list_sort(list_distinct(flatten({_of_open("reasons")}))), NULL, NULL,
                   any_value(place), any_value(ingested_at), any_value(value), bool_or(is_open),
                   {_of_open("item")}
            FROM ({rows}, item FROM "rejected_{name}" r) GROUP BY ALL
        """

    def _is_open(self, name: str) -> str:
        """SQL for whether silver has no copy of a rejected row ``r``. A copy is the same item of a
        record that corrects the row's record, or has its id at an event time within
        ``one_copy_within``."""
        silver = self._at.silver[name]
        if not silver.total("replaced"):
            return "true"
        self._register(f"silver_{name}", silver)
        within = self.source.record.one_copy_within
        same_id = "false"
        if within is not None:
            micros = within // timedelta(microseconds=1)
            same_id = f"""
                s._event_id = r.event_id
                AND {sql_of_log("s._partition")} = {sql_of_log("r.partition")}
                AND abs(epoch_us(s._event_time) - epoch_us(r.event_time)) <= {micros}
            """
        return f"""
            NOT EXISTS (SELECT 1 FROM "silver_{name}" s WHERE s._item = r.item AND {same_id})
            AND NOT EXISTS (
                SELECT 1 FROM copies c JOIN "silver_{name}" s
                ON s._partition = c.partition AND s._offset = c."offset" AND s._item = r.item
                WHERE c.of_partition = r.partition AND c.of_offset = r."offset")
        """

    def _register(self, name: str, position: TablePosition) -> None:
        self._sql.register(name, position.dataset())


def _of_open(column: str) -> str:
    """SQL for a list of the values of the open rows of a record; of all rows, if none is open."""
    values = f"list({column} ORDER BY item)"
    return f"coalesce({values} FILTER (WHERE is_open), {values})"


def refused_table_names(pipeline: Pipeline, sources: Collection[str]) -> Iterator[str]:
    """The names that ``RefusedSelection.table`` may have for some sources."""
    yield QUARANTINE.name
    for name, table in pipeline.silver.items():
        if table.suite is not None and table.source in sources:
            yield f"{REJECTED.name}.{name}"
