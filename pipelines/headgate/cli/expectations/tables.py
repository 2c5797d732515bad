"""The table that an argument names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.nearest import nearest
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import GoldTable, Pipeline, SilverTable
    from headgate.declaration.names import Columns

TableName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="As silver.NAME or gold.NAME.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write a new file instead of stdout."),
]


class NoSuchTableError(HeadgateError, code=exit_codes.USAGE):
    """The pipeline has no table of this name, or the table has no suite."""


def table_of(declared: Pipeline, word: str) -> SilverTable | GoldTable:
    """Raises NoSuchTableError with the nearest name."""
    known: dict[str, SilverTable | GoldTable] = {
        **{f"silver.{name}": table for name, table in declared.silver.items()},
        **{f"gold.{name}": table for name, table in declared.gold.items()},
    }
    if word not in known:
        guess = nearest(word, known)
        hint = f' (did you mean "{guess}"?)' if guess else ""
        raise NoSuchTableError(
            f"{declared.name} has no table {word!r}{hint}",
            remedy=f"its tables: {', '.join(known)}; see {pipeline_command('plan')}",
        )
    return known[word]


def columns_of(declared: Pipeline, table: SilverTable | GoldTable) -> Columns:
    """The columns that rules can use, with their types."""
    from headgate.declaration.model import GoldTable
    from headgate.declaration.names import STATUS_COLUMNS, silver_columns
    from headgate.declaration.operators import columns_of as result_columns

    if isinstance(table, GoldTable):
        held = {column.name: column.type for column in table.schema}
        return {**result_columns(table), **held, **STATUS_COLUMNS}
    rescues = declared.sources[table.source].record.unknown_fields == "rescue"
    own = silver_columns(rescues=rescues, has_suite=False)
    return {**{column.name: column.type for column in table.schema}, **own}
