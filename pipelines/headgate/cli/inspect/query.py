"""``headgate query | versions``: SQL over all tables of pipelines without a JVM, and which versions
of the tables belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from headgate.cli import declaration
from headgate.cli.options import (
    DEFAULT_ROOT,
    Json,
    PipelineName,
    Root,
    command_at,
    pipeline_names,
    place_at,
)
from headgate.cli.output import console, grid, respond
from headgate.cli.rows import as_text, print_rows
from headgate.insight.querying.names import Queried
from headgate.insight.querying.sandbox import QueryError
from headgate.insight.querying.sql import answer, pipelines_in
from headgate.insight.querying.versions import versions_at


def _at(help: str) -> Any:
    return typer.Option("--at", metavar="N", min=0, help=help)


def query(
    pipelines: Annotated[list[str], pipeline_names("Declarations' paths, or their names.")],
    sql: Annotated[
        str,
        typer.Argument(metavar="SQL", help='For example "SELECT * FROM gold.bids_per_minute".'),
    ],
    at: Annotated[
        int | None, _at("All tables as of this batch; their newest versions if left out.")
    ] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Query the tables with SQL. With one PIPELINE, tables are bronze.SOURCE, silver.T, gold.T,
    late.T, rejected.T, quarantine and files. With several, they are PIPELINE.gold.T and so on, and
    PIPELINE before the SQL may be left out. The SQL is DuckDB's, and only reads."""
    given = [_called(word, root) for word in pipelines]
    if not given and re.fullmatch(r"[\w./-]+", sql):
        raise QueryError(
            f"no SQL is given, only {sql!r}",
            remedy=command_at("query", sql, root, "SHOW ALL TABLES"),
        )
    known = {each.pipeline.name for each in given}
    stems = {path.stem for path in declaration.declarations()}
    named = [_called(name, root) for name in pipelines_in(sql, stems) if name not in known]
    if at is not None:
        if len(given) != 1 or named:
            raise typer.BadParameter("needs exactly one pipeline", param_hint="--at")
        given = [replace(given[0], versions=_versions(given[0], at))]
    columns, rows = answer([*given, *named], sql, short=given[0] if len(given) == 1 else None)
    document = {"columns": columns, "rows": [[_plain(v) for v in row] for row in rows]}
    respond(json, document, lambda: print_rows(console(), columns, rows))


def _versions(queried: Queried, n: int) -> Mapping[str, int]:
    return versions_at(queried.layout, queried.pipeline, n).versions


def _called(word: str, root: str) -> Queried:
    return Queried(*declaration.opened(word, root, needs_secrets=False), place_at(word, root))


def _plain(value: object) -> object:
    """JSON's own types as they are; everything else as text, so that no digit is lost."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else as_text(value)


def versions(
    pipeline: PipelineName,
    n: Annotated[int | None, _at("The batch; the last one of all tables if left out.")] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show which versions of the tables belong together.

    They have all of the same batches, so a reader that opens them sees one state of the pipeline.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = versions_at(layout, declared, n)
    tables = {
        path: {"version": version, "uri": layout.storage.uri(path)}
        for path, version in found.versions.items()
    }
    rows = ((path, str(each["version"]), each["uri"]) for path, each in tables.items())
    shown = grid(f"batch {found.n}", "table", "version:", "folder", rows=rows)
    respond(json, {"pipeline": declared.name, "n": found.n, "tables": tables}, shown)
