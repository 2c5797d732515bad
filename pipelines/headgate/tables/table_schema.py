"""What a table is made as."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headgate.tables.table import Table


@dataclass(frozen=True)
class TableSchema:
    """``schema`` is what is declared of ``table`` now, which may not be what it has;
    ``time_column`` is the one that its files have bounds of."""

    table: Table
    schema: pa.Schema
    time_column: str

    def create(self, definition: str) -> None:
        """Make the table if it is not there."""
        self.table.create(self.schema, definition, time_column=self.time_column)
