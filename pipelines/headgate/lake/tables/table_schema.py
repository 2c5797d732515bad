"""The schema with which a table is created."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class TableSchema:
    """``schema`` is the declared schema of ``table``, which may differ from its current one.
    ``time_column`` is the column for which its files have bounds."""

    table: Table
    schema: pa.Schema
    time_column: str

    def create(self, definition: str) -> None:
        """Create the table if it does not exist."""
        self.table.create(self.schema, definition, time_column=self.time_column)
