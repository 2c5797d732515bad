"""The errors that users see if a query fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.commands import pipeline_command, rendered, shell_command
from headgate.errors import HeadgateError
from headgate.insight.querying.names import Queried, known_names, nearest_names
from headgate.insight.querying.sandbox import QueryError
from headgate.lake.tables.damage import is_about_reading, require_readable
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    import duckdb

_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_NO_TABLE = re.compile(
    r'^Catalog Error: Table with name "?(.+?)"? does not exist.*?\n\n', re.DOTALL
)


class DamagedTableError(HeadgateError, code=exit_codes.LOG_GAP):
    """A table of the query cannot be read."""


def failure(
    error: duckdb.Error,
    queried: Sequence[Queried],
    short: Queried | None,
    opened: Sequence[tuple[Queried, str]],
) -> HeadgateError:
    """The error of a failed query. ``opened`` are the tables that it has opened, by their paths."""
    import duckdb

    remedy = _tables_are(queried, short)
    if isinstance(error, duckdb.PermissionException):
        names = ", ".join(each.pipeline.name for each in queried) or "pipelines"
        said = f"a query can read only the tables of {names}, not files or the network:\n{error}"
        return QueryError(said, remedy)
    if is_about_reading(error):
        if damage := _damage(opened):
            return damage
        if "FileNotFoundError" in str(error) and any(each.versions for each in queried):
            return QueryError(
                "a vacuum has deleted files of these versions",
                remedy=f"choose a later batch: {pipeline_command('versions')}",
            )
    said = _COLOUR.sub("", str(error))
    if isinstance(error, duckdb.CatalogException):
        said = _NO_TABLE.sub(lambda found: _no_table(found[1], said, queried, short), said)
    return QueryError(said, remedy)


def _no_table(given: str, said: str, queried: Sequence[Queried], short: Queried | None) -> str:
    """The message about an unknown table, with the most similar table of the pipelines. DuckDB
    would suggest one of its internal tables, and ``given`` is the name without the pipeline."""
    named = [each for each in queried if f"{each.pipeline.name}.{given}" in said]
    near = nearest_names(given, known_names(named or queried, short))
    better = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"table {given} does not exist{better}\n\n"


def _damage(opened: Sequence[tuple[Queried, str]]) -> DamagedTableError | None:
    """The first damage of the newest versions of some tables."""
    for queried, path in opened:
        table = Table(queried.layout.storage, path, pipeline=queried.pipeline.name)
        try:
            require_readable([table])
        except HeadgateError as damage:
            return DamagedTableError(damage.message, rendered(damage.remedy, queried.place))
    return None


def _tables_are(queried: Sequence[Queried], short: Queried | None) -> str:
    if not queried:
        return f"name tables as shop.gold.TABLE; pipelines are in: {shell_command('list')}"
    return f"tables: {', '.join(known_names(queried, short))}"
