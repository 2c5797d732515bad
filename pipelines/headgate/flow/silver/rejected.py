"""Rejected rows: conforming rows that break a rule of their silver table's suite.

Silver's query writes them to files of their own. Arrow adds their bytes from bronze: they are few,
and a Spark job would cost more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
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

_POSITION = list(POSITION)
_RULES = Array(Struct.of({"id": STRING, "severity": STRING}))


def rejected_type(source: Source) -> StructType:
    """``rules`` are all the rules that the row breaks; ``suite`` is the digest of their suite."""
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
        if not staged:
            return self._schema.empty_table()
        found = pa.concat_tables(_identities(silver, file) for file in staged)
        own = self._own(found)
        known = found.select(_POSITION).append_column("row", pa.arange(0, len(found)))
        require_sound(bronze, files)
        parts = [
            self._rows(part, own.take(part.column("row")))
            for file in files
            for part in rows_among(bronze, file, known, self._schema.names)
        ]
        return pa.concat_tables([self._schema.empty_table(), *parts])

    def _own(self, found: pa.Table) -> pa.Table:
        """The columns that bronze does not have, of the rows with some identities."""
        rules = [[self._rules[each] for each in ids] for ids in found.column(WARNINGS).to_pylist()]
        return pa.table(
            {
                ITEM: found.column(ITEM),
                "rules": pa.array(rules, self._schema.field("rules").type),
                "suite": pa.array([self._suite] * len(found), pa.string()),
            }
        )

    def _rows(self, bronze: pa.Table, own: pa.Table) -> pa.Table:
        columns = {
            name: (own if name in own.column_names else bronze).column(name)
            for name in self._schema.names
        }
        return pa.table(columns).cast(self._schema)


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
