"""Corrected copies of records, as a replay brings them to bronze."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Source
from headgate.declaration.names import POSITION
from headgate.flow.bronze.id_index import Flags
from headgate.lake.tables.record_shape import record_schema
from headgate.lake.tables.replay import RecordPosition, positions_of


def copies_schema(source: Source) -> pa.Schema:
    """``partition`` and ``offset`` are those of the source's record that a copy goes back to, and
    ``was_valid`` says whether the corrected record is valid in bronze. ``value`` is the copy; for
    CSV it is a JSON object of its cells as texts. The other columns are as in ``record_schema``."""
    records = record_schema(connector_of(source).place)
    return records.append(pa.field("was_valid", pa.bool_()))


@dataclass(frozen=True)
class CorrectedCopies:
    """``rows`` has ``copies_schema`` of ``source`` and is sorted by position. Positions are
    unique."""

    source: Source
    rows: pa.Table

    @property
    def was_valid(self) -> Flags:
        return np.asarray(self.rows.column("was_valid").to_numpy(), np.bool_)

    def of(self, positions: Iterable[RecordPosition]) -> CorrectedCopies:
        """The copies that go back to the source's records at ``positions``."""
        wanted = frozenset(positions)
        kept = [each in wanted for each in positions_of(self.rows, tuple(POSITION))]
        return replace(self, rows=self.rows.filter(pa.array(kept, pa.bool_())))

    def records(self) -> pa.Table:
        """The copies as records at the positions of the source's records. If a record's id is its
        position, the copy then has the same id."""
        kind = connector_of(self.source)
        is_csv = kind.format(self.source.reads) == "csv"
        wanted = record_schema(kind.place, has_document=is_csv)
        rows = self.rows.drop_columns("was_valid")
        if is_csv:
            rows = rows.append_column("document", rows.column("value"))
            rows = rows.append_column("detail", pa.nulls(len(rows), pa.string()))
        return rows.select(wanted.names).cast(wanted)

    def moved(self, rows: pa.Table, first: int) -> pa.Table:
        """Bronze's rows of the copies at their own positions, the first at the offset ``first``."""
        own = {
            "partition": pc.bit_wise_not(rows.column("partition")),
            "offset": pa.array(range(first, first + len(rows)), pa.int64()),
        }
        return pa.table({name: own.get(name, rows.column(name)) for name in rows.column_names})
