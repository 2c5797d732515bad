"""The table that an argument names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.named import named
from headgate.commands import pipeline_command
from headgate.declaration.model import GoldTable, Pipeline, SilverTable
from headgate.declaration.names import Columns
from headgate.declaration.operators import gold_columns

TableName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="As silver.NAME or gold.NAME.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write a new file instead of stdout."),
]


def table_of(declared: Pipeline, word: str) -> SilverTable | GoldTable:
    """Raises UsageError with the nearest name."""
    known: dict[str, SilverTable | GoldTable] = {
        **{f"silver.{name}": table for name, table in declared.silver.items()},
        **{f"gold.{name}": table for name, table in declared.gold.items()},
    }
    return named(known, word, f"{declared.name} has no table", f"; see {pipeline_command('plan')}")


def columns_of(declared: Pipeline, table: SilverTable | GoldTable) -> Columns:
    """All columns of the table, with their types."""
    if isinstance(table, GoldTable):
        return gold_columns(table)
    return table.row(declared.sources[table.source].record)
