"""Proves by id that every event is accounted for: follows each row of bronze, by its position, to
the one table that has it, with DuckDB over the Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.declaration.contracts.operator import key_of_gold, late_identity, operator_of
from headgate.declaration.model import Explode, GoldTable, Pipeline, SilverTable
from headgate.declaration.names import IDENTITY, INPUT, POSITION, SILVER_IDENTITY
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.damage import naming_damage
from headgate.lake.tables.record_shape import IGNORED
from headgate.lake.tables.replay import sql_of_log
from headgate.lake.tables.snapshot import (
    Positions,
    TablePosition,
    as_of,
    corrections,
    corrections_table,
    late_as_of,
    newest,
    silver_read,
    tables_of,
)

if TYPE_CHECKING:
    import duckdb
    from pyarrow.compute import Expression

SHOWN = 20
"""The number of misplaced rows that are listed."""

_BRONZE = f"""
    SELECT partition, "offset", event_id, rows,
           CASE WHEN duplicate THEN 'duplicate' WHEN reason = '{IGNORED}' THEN 'ignored'
                WHEN reason IS NOT NULL THEN 'quarantined' WHEN rows = 0 THEN 'empty'
                ELSE 'conformed' END AS outcome
    FROM bronze_rows
"""


@dataclass(frozen=True)
class Discrepancy:
    """``count`` rows are misplaced; ``examples`` are the first of them."""

    table: str
    problem: str
    count: int
    examples: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Proof:
    """``sources`` has the number of bronze's rows that were followed, by source. ``items`` has the
    number of items that were followed, by silver table that explodes an array. Without findings,
    each row and each item is in exactly one place."""

    sources: Mapping[str, int]
    findings: tuple[Discrepancy, ...]
    items: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(self.sources.values())

    @property
    def holds(self) -> bool:
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        each = {"sources": {name: {"rows": rows} for name, rows in self.sources.items()}}
        return {
            "rows": self.rows,
            **(each if len(self.sources) > 1 else {}),
            **({"items": dict(self.items)} if self.items else {}),
            "holds": self.holds,
            "findings": [asdict(f) for f in self.findings],
        }


def by_id(layout: Layout, pipeline: Pipeline) -> Proof:
    """Follow every row of bronze. Reads positions and ids of all tables, which takes seconds per
    million rows.

    Each table is compared with its upstream table as of its own batch id, so the proof also holds
    for a running pipeline. Raises HeadgateError as ``balance`` does, DamagedFileError.
    """
    import duckdb

    at = newest(layout, pipeline)
    prover = _Prover(duckdb.connect(), at)
    findings: list[Discrepancy] = []
    with naming_damage(lambda: tables_of(layout, pipeline.name)):
        for table in pipeline.silver.values():
            findings += prover.silver(table)
        for gold in pipeline.gold.values():
            findings += prover.gold(gold)
    rows = {name: bronze.total("read") for name, bronze in at.bronze.items()}
    return Proof(rows, tuple(findings), prover.items)


class _Prover:
    def __init__(self, connection: duckdb.DuckDBPyConnection, at: Positions) -> None:
        self._sql = connection
        self._at = at
        self.items: dict[str, int] = {}
        self._corrections = {name: corrections(each) for name, each in at.bronze.items()}

    def silver(self, table: SilverTable) -> Iterator[Discrepancy]:
        """Check that every row of bronze, and each of its items, is in exactly one place, and that
        every row of the other tables is in bronze."""
        silver = self._at.silver[table.name]
        bronze, quarantine = (each[table.source] for each in (self._at.bronze, self._at.quarantine))
        n = silver.state.n
        self._load("bronze_rows", as_of(bronze, n), _bronze_columns(table.explode))
        self._load("quarantine_rows", as_of(quarantine, n), ["partition", "offset"])
        self._load("silver_rows", silver, _SILVER_COLUMNS)
        rejected = self._at.rejected.get(table.name)
        if rejected is None:
            self._run(
                "CREATE OR REPLACE TEMP TABLE rejected AS "
                "SELECT *, 0 AS item, NULL::VARCHAR AS event_id FROM quarantine_rows LIMIT 0"
            )
        else:
            self._load("rejected", as_of(rejected, n), [*IDENTITY, "event_id"])
            twice = _TWICE.format(_ROW, "rejected")
            yield from self._wrong(rejected.table.name, "rows more than once", twice)
        self._run(f"CREATE OR REPLACE TEMP TABLE bronze AS {_BRONZE}")
        item = "0" if table.explode is None else "unnest(range(rows))"
        self._run(f"CREATE OR REPLACE TEMP TABLE expected AS {_EXPECTED.format(item)}")
        self._run(
            f"CREATE OR REPLACE TEMP TABLE silver AS SELECT {_OF_SILVER}, "
            "_event_id AS event_id FROM silver_rows"
        )
        self._run(
            'CREATE OR REPLACE TEMP TABLE quarantine AS SELECT partition, "offset" '
            "FROM quarantine_rows"
        )
        for held, identity, name in (
            ("bronze", _RECORD, bronze.table.name),
            ("silver", _ROW, silver.table.name),
            ("quarantine", _RECORD, quarantine.table.name),
        ):
            yield from self._wrong(name, "rows more than once", _TWICE.format(identity, held))
        yield from self._wrong(silver.table.name, "rows without a valid record in bronze", _FOREIGN)
        replaced = self._number(_REPLACED)
        if replaced != silver.total("replaced"):
            problem = f"copies of rejected rows, but {silver.total('replaced'):,} were counted"
            yield Discrepancy(silver.table.name, problem, replaced)
        if rejected is not None:
            self._sql.register("corrections", corrections_table(self._corrections[table.source]))
            yield from self._wrong(silver.table.name, "copies of one record", _CORRECTED_TWICE)
        missing, wrong = (
            "invalid records that are missing",
            "rows without an invalid record in bronze",
        )
        yield from self._wrong(quarantine.table.name, missing, _NOT_QUARANTINED)
        yield from self._wrong(quarantine.table.name, wrong, _WRONGLY_QUARANTINED)
        if rejected is not None:
            problem = "rows that silver has too, or without a valid record in bronze"
            yield from self._wrong(rejected.table.name, problem, _WRONGLY_REJECTED)
        yield from self._missing(table, silver)
        if table.explode is not None:
            yield from self._exploded(silver, replaced)

    def _exploded(self, silver: TablePosition, replaced: int) -> Iterator[Discrepancy]:
        """Check the numbers of records without items, and of items. ``replaced`` items are those of
        copies. An ignored record counts as one item."""
        empty = self._number("SELECT count(*) FROM bronze WHERE outcome = 'empty'")
        items = self._number("SELECT count(*) FROM expected") + self._number(_IGNORED) + replaced
        self.items[silver.table.name] = items
        for key, there in (("empty", empty), ("items", items)):
            if there != silver.total(key):
                problem = f"{key} in bronze, but {silver.total(key):,} were counted"
                yield Discrepancy(silver.table.name, problem, there)

    def _missing(self, table: SilverTable, silver: TablePosition) -> Iterator[Discrepancy]:
        """Check that the number of valid rows neither in silver nor rejected is that of filtered
        rows."""
        ignored = self._number(_IGNORED)
        filtered = silver.total("filtered") - ignored if table.where else 0
        count, examples = self._rows_of(_MISSING)
        if count != filtered:
            problem = f"valid records are missing, but {filtered:,} were filtered"
            yield Discrepancy(silver.table.name, problem, count, examples)

    def gold(self, table: GoldTable) -> Iterator[Discrepancy]:
        """Check that late pairs are unique and come from silver, and that the windows' counts add
        up to the folded pairs."""
        gold = self._at.gold[table.name]
        if table.is_rollup:
            yield from self._rollup(table, gold)
            return
        late = late_as_of(self._at.late[table.name], gold)
        of_result = [name for name in late_identity(table) if name not in SILVER_IDENTITY]
        self._load("all_late_rows", late, [*_SILVER_COLUMNS, *of_result])
        late_twice = _LATE_TWICE.format("".join(f'"{name}", ' for name in of_result))
        yield from self._wrong(late.table.name, "pairs more than once", late_twice)
        for name, n in silver_read(table, gold.state).items():
            own = f"WHERE {INPUT} = '{name}'" if operator_of(table).appends else ""
            self._run(f"CREATE OR REPLACE TEMP TABLE late_rows AS FROM all_late_rows {own}")
            silver = as_of(self._at.silver[name], n)
            self._load("silver_rows", silver, _SILVER_COLUMNS)
            problem = "pairs of rows that silver lacks"
            yield from self._wrong(late.table.name, problem, _LATE_FOREIGN)
        if operator_of(table).appends:
            yield from self._unique(table, gold)
        if table.counter is not None:
            yield from self._counted(gold, table.counter)

    def _rollup(self, table: GoldTable, gold: TablePosition) -> Iterator[Discrepancy]:
        """Check that no two rows have the same key, and that the windows' counts add up to the
        folded rows."""
        yield from self._unique(table, gold)
        if table.counter is not None:
            yield from self._counted(gold, table.counter)

    def _unique(self, table: GoldTable, gold: TablePosition) -> Iterator[Discrepancy]:
        key = ", ".join(f'"{name}"' for name in key_of_gold(table))
        self._load("gold_keys", gold, [*key_of_gold(table)])
        rows = f"SELECT {key} FROM gold_keys GROUP BY ALL HAVING count(*) > 1"
        if (count := self._number(f"SELECT count(*) FROM ({rows})")) > 0:
            yield Discrepancy(gold.table.name, "results more than once", count)

    def _counted(self, gold: TablePosition, measure: str) -> Iterator[Discrepancy]:
        self._load("gold_rows", gold, [measure])
        counted = self._number(f'SELECT coalesce(sum("{measure}"), 0) FROM gold_rows')
        folded = sum(map(gold.total, ("folded", "replayed", "backfilled")))
        if counted != folded:
            problem = f"sum({measure}) is {counted:,}, but {folded:,} pairs were folded: off by"
            yield Discrepancy(gold.table.name, problem, abs(counted - folded))

    def _load(
        self, name: str, position: TablePosition, columns: list[str] | dict[str, Expression]
    ) -> None:
        """Load ``columns`` of a table, or expressions by name, as of a position. No other column is
        read."""
        scan = position.dataset().scanner(columns=columns)
        self._sql.register("scan", scan.to_reader())
        self._run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM scan")
        self._sql.unregister("scan")

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._sql.execute(sql).fetchall()
        return rows

    def _number(self, sql: str) -> int:
        return int(self._run(sql)[0][0])

    def _wrong(self, table: str, problem: str, sql: str) -> Iterator[Discrepancy]:
        count, examples = self._rows_of(sql)
        if count:
            yield Discrepancy(table, problem, count, examples)

    def _rows_of(self, sql: str) -> tuple[int, tuple[dict[str, Any], ...]]:
        count = self._number(f"SELECT count(*) FROM ({sql})")
        if not count:
            return 0, ()
        found = f'SELECT * FROM ({sql}) ORDER BY partition, "offset" LIMIT {SHOWN}'
        names = [column[0] for column in self._run(f"DESCRIBE {found}")]
        return count, tuple(dict(zip(names, row, strict=True)) for row in self._run(found))


def _bronze_columns(explode: Explode | None) -> dict[str, Expression]:
    """``rows`` is the number of rows that a record becomes if it is valid and no duplicate."""
    import pyarrow.compute as pc

    names = (*POSITION, "event_id", "duplicate", "reason")
    rows = pc.scalar(1)
    if explode is not None:
        sizes = pc.list_value_length(pc.field("record", *explode.array.split(".")))
        least = pc.scalar(0 if explode.empty == "drop" else 1)
        rows = pc.max_element_wise(sizes, least)
    return {**{name: pc.field(name) for name in names}, "rows": rows}


_IGNORED = "SELECT count(*) FROM bronze WHERE outcome = 'ignored'"
_EXPECTED = """
    SELECT partition, "offset", {} AS item, event_id FROM bronze WHERE outcome = 'conformed'
"""
_SILVER_COLUMNS = [*SILVER_IDENTITY, "_event_id"]
_RECORD = ", ".join(f'"{name}"' for name in POSITION)
_ROW = ", ".join(f'"{name}"' for name in IDENTITY)
_OF_SILVER = ", ".join(f'_{name} AS "{name}"' for name in IDENTITY)

_TWICE = "SELECT {}, count(*) AS times FROM {} GROUP BY ALL HAVING count(*) > 1"
# A copy of a rejected row is a duplicate to bronze. A copy in partition ~p belongs to the log of p.
_IS_REPLACED = f"""
    b.outcome = 'duplicate' AND s.item < b.rows
    AND (s.event_id, {sql_of_log("s.partition")}, s.item)
    IN (SELECT (event_id, {sql_of_log("partition")}, item) FROM rejected)
"""
_FOREIGN = f"""
    SELECT s.* FROM silver s
    LEFT JOIN bronze b USING (partition, "offset")
    ANTI JOIN expected USING ({_ROW}) WHERE b.outcome IS NULL OR NOT ({_IS_REPLACED})
"""
_REPLACED = f"""
    SELECT count(*) FROM silver s JOIN bronze b USING (partition, "offset") WHERE {_IS_REPLACED}
"""
_CORRECTED_TWICE = """
    SELECT r.*, count(*) AS times FROM rejected r
    JOIN corrections c ON (c.of_partition, c.of_offset) = (r.partition, r."offset")
    JOIN silver s ON (s.partition, s."offset", s.item) = (c.partition, c."offset", r.item)
    GROUP BY ALL HAVING count(*) > 1
"""
_NOT_QUARANTINED = """
    SELECT b.partition, b."offset", b.event_id FROM bronze b
    ANTI JOIN quarantine USING (partition, "offset") WHERE b.outcome = 'quarantined'
"""
_WRONGLY_QUARANTINED = """
    SELECT q.partition, q."offset" FROM quarantine q
    LEFT JOIN bronze b USING (partition, "offset")
    WHERE b.outcome IS DISTINCT FROM 'quarantined'
"""
_WRONGLY_REJECTED = f"""
    SELECT r.* FROM rejected r
    LEFT JOIN expected e USING ({_ROW}) LEFT JOIN silver s USING ({_ROW})
    WHERE e.partition IS NULL OR s.partition IS NOT NULL
"""
_MISSING = f"""
    SELECT * FROM expected ANTI JOIN silver USING ({_ROW}) ANTI JOIN rejected USING ({_ROW})
"""
_LATE_TWICE = f"""
    SELECT {_OF_SILVER}, {{}}count(*) AS times
    FROM all_late_rows GROUP BY ALL HAVING count(*) > 1
"""
_LATE_FOREIGN = f"""
    SELECT {_OF_SILVER}, _event_id AS event_id FROM late_rows
    ANTI JOIN silver_rows USING ({", ".join(SILVER_IDENTITY)})
"""
