"""Rejected rows: conforming rows that break a rule of their silver table's suite.

Silver's query writes them to files of their own. Arrow adds their bytes from bronze: they are few,
and a Spark job would cost more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Source
from headgate.declaration.names import IDENTITY, ITEM, POSITION, SILVER_IDENTITY, WARNINGS
from headgate.declaration.suites.model import Suite
from headgate.declaration.types import BINARY, STRING, TIMESTAMP, Array, Struct
from headgate.flow.silver.transform import REJECTED
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import require_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import arrow_schema, struct_type
from headgate.lake.tables.replay import RecordPosition, positions_of

_POSITION = list(POSITION)
_RULES = Array(Struct.of({"id": STRING, "severity": STRING}))


def rejected_type(source: Source) -> StructType:
    """``rules`` are all the rules that the row breaks; ``suite`` is the digest of their suite.
    ``value`` has the bytes of the record. It is null in the rows of all but the record's first
    rejected item: a long record would be stored once for each item."""
    return struct_type(
        {
            **IDENTITY,
            "event_id": STRING,
            "event_time": TIMESTAMP,
            "rules": _RULES,
            "suite": STRING,
            "value": BINARY,
            connector_of(source).place: STRING,
            "ingested_at": TIMESTAMP,
        }
    )


def divided_files(staged: Sequence[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    """Silver's files and those of rejected rows, among the files of one staged step."""
    kept: list[DataFile] = []
    rejected: list[DataFile] = []
    for file in staged:
        into = rejected if file.partition.get(REJECTED) == "true" else kept
        into.append(replace(file, partition={}))
    return kept, rejected


def rules_broken(storage: Storage, files: Iterable[DataFile]) -> Counter[str]:
    """How many rows of some staged files break each rule."""
    counts: Counter[str] = Counter()
    for file in files:
        with storage.open(file.path) as source:
            ids = pq.read_table(source, columns=[WARNINGS]).column(WARNINGS)
        if ids.null_count < len(ids):
            counts.update(ids.combine_chunks().flatten().to_pylist())
    return counts


class RejectedRows:
    """Creates the rows of ``rejected_type``."""

    def __init__(self, source: Source, suite: Suite) -> None:
        self._schema = arrow_schema(rejected_type(source))
        self._rules = {rule.id: {"id": rule.id, "severity": rule.severity} for rule in suite.rules}
        self._suite = suite.digest

    def of(
        self,
        silver: Storage,
        staged: Sequence[DataFile],
        bronze: Storage,
        files: Sequence[DataFile],
    ) -> pa.Table:
        """The rejected rows among some files of bronze. ``staged`` has their identities and broken
        rules. Raises DamagedFileError or OSError if a file of bronze is damaged."""
        nothing = self._schema.empty_table()
        if not staged:
            return nothing
        found = pa.concat_tables(_identities(silver, file) for file in staged)
        found = found.sort_by([(name, "ascending") for name in IDENTITY])
        # The first rejected item of each record stands for the record.
        positions = positions_of(found, _POSITION)
        firsts = [n for n, each in enumerate(positions) if not n or positions[n - 1] != each]
        known = found.select(_POSITION).take(firsts)
        known = known.append_column("row", pa.array(firsts, pa.int64()))
        require_sound(bronze, files)
        parts = [
            part for file in files for part in rows_among(bronze, file, known, self._schema.names)
        ]
        return self._rows(found, positions, pa.concat_tables(parts)) if parts else nothing

    def _rows(
        self, found: pa.Table, positions: Sequence[RecordPosition], records: pa.Table
    ) -> pa.Table:
        """``records`` has the rows of bronze, with the number of the first row that was ``found``
        of each, at ``positions``."""
        rules = [[self._rules[each] for each in ids] for ids in found.column(WARNINGS).to_pylist()]
        own = {
            ITEM: found.column(ITEM),
            "rules": pa.array(rules, self._schema.field("rules").type),
            "suite": pa.array([self._suite] * len(found), pa.string()),
        }
        firsts = {first: row for row, first in enumerate(records.column("row").to_pylist())}
        of = {positions[first]: row for first, row in firsts.items()}
        record = pa.array([of.get(each) for each in positions], pa.int64())
        value = pa.array([firsts.get(n) for n in range(len(found))], pa.int64())
        columns = {
            name: own[name]
            if name in own
            else records.column(name).take(value if name == "value" else record)
            for name in self._schema.names
        }
        return pa.table(columns).cast(self._schema).filter(pc.is_valid(record))


def _identities(storage: Storage, file: DataFile) -> pa.Table:
    with storage.open(file.path) as source:
        rows = pq.read_table(source, columns=[*SILVER_IDENTITY, WARNINGS])
    return rows.rename_columns([*IDENTITY, WARNINGS])


def rows_among(
    storage: Storage, file: DataFile, known: pa.Table, names: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows of a file of bronze, or of rejected rows, at known positions, with the column
    ``row`` of ``known``."""
    with storage.open(file.path) as source:
        parquet = pq.ParquetFile(source, page_checksum_verification=True)
        wanted = [name for name in names if name in parquet.schema_arrow.names]
        for group in range(parquet.num_row_groups):
            places = parquet.read_row_group(group, columns=_POSITION)
            places = places.append_column("at", pa.arange(0, len(places)))
            joined = places.join(known, _POSITION, join_type="inner")
            if len(joined):
                rows = parquet.read_row_group(group, columns=wanted).take(joined.column("at"))
                yield rows.append_column("row", joined.column("row"))
