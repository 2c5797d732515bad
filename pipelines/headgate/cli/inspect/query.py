"""``headgate query | versions``: SQL over all tables of pipelines without a JVM, and which versions
of the tables belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

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
from headgate.cli.sources import SourceLabels
from headgate.errors import UsageError
from headgate.insight.querying.names import Queried
from headgate.insight.querying.sandbox import QueryError
from headgate.insight.querying.sql import answer, pipelines_in
from headgate.insight.querying.versions import versions_at

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline


def _at(help: str) -> Any:
    return typer.Option("--at", metavar="N", help=f"{help} SOURCE=N, if there are several sources.")


def query(
    pipelines: Annotated[list[str], pipeline_names("Declarations' paths, or their names.")],
    sql: Annotated[
        str,
        typer.Argument(metavar="SQL", help='For example "SELECT * FROM gold.bids_per_minute".'),
    ],
    at: Annotated[
        list[str] | None, _at("All tables as of this batch; their newest versions if left out.")
    ] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Query the tables with SQL. With one PIPELINE, tables are bronze.SOURCE, silver.T, gold.T,
    late.T, rejected.T, quarantine and files; with several sources, quarantine.SOURCE and
    files.SOURCE. With several pipelines, they are PIPELINE.gold.T and so on, and PIPELINE before
    the SQL may be left out. The SQL is DuckDB's, and only reads."""
    given = [_called(word, root) for word in pipelines]
    if not given and re.fullmatch(r"[\w./-]+", sql):
        raise QueryError(
            f"no SQL is given, only {sql!r}",
            remedy=command_at("query", sql, root, "SHOW ALL TABLES"),
        )
    known = {each.pipeline.name for each in given}
    stems = {path.stem for path in declaration.declarations()}
    named = [_called(name, root) for name in pipelines_in(sql, stems) if name not in known]
    if at:
        if len(given) != 1 or named:
            raise typer.BadParameter("needs exactly one pipeline", param_hint="--at")
        given = [replace(given[0], versions=_versions(given[0], at))]
    columns, rows = answer([*given, *named], sql, short=given[0] if len(given) == 1 else None)
    document = {"columns": columns, "rows": [[_plain(v) for v in row] for row in rows]}
    respond(json, document, lambda: print_rows(console(), columns, rows))


def _versions(queried: Queried, at: Sequence[str]) -> Mapping[str, int]:
    wanted = _batches(queried.pipeline, at)
    return versions_at(queried.layout, queried.pipeline, wanted).versions


def _batches(declared: Pipeline, at: Sequence[str]) -> dict[str, int]:
    """The batch ids of --at, by source and by input log. Raises BadParameter, UsageError."""
    from headgate.declaration.graph import graph_of
    from headgate.declaration.kinds import NUMBERING

    names = {node.name: node.name for node in graph_of(declared).of(*NUMBERING)}
    found: dict[str, int] = {}
    for each in at:
        source, _, number = each.rpartition("=")
        if not re.fullmatch("[0-9]{1,18}", number):
            raise typer.BadParameter(f"{number!r} is not a batch id", param_hint="--at")
        if not source and len(declared.sources) > 1:
            known = " or ".join(f"--at {name}={number}" for name in declared.sources)
            raise UsageError(
                f"{declared.name} has several sources, each with batch ids of its own",
                remedy=f"say of which source: {known}",
            )
        name = source or next(iter(names))
        found[declaration.named(names, name, f"{declared.name} has no source")] = int(number)
    return found


def _called(word: str, root: str) -> Queried:
    return Queried(*declaration.opened(word, root, needs_secrets=False), place_at(word, root))


def _plain(value: object) -> object:
    """JSON's own types as they are; everything else as text, so that no digit is lost."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else as_text(value)


def versions(
    pipeline: PipelineName,
    at: Annotated[
        list[str] | None, _at("The batch; the last one of all tables if left out.")
    ] = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show which versions of the tables belong together.

    They have all of the same batches, so a reader that opens them sees one state of the pipeline.
    """
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    found = versions_at(layout, declared, _batches(declared, at or ()))
    labels = SourceLabels(declared.sources)
    tables = {
        path: {"version": version, "uri": layout.storage.uri(path)}
        for path, version in found.versions.items()
    }
    rows = ((path, str(each["version"]), each["uri"]) for path, each in tables.items())
    title = ", ".join(f"{labels.before(name)}batch {n}" for name, n in found.n.items())
    shown = grid(title, "table", "version:", "folder", rows=rows)
    facts = labels.facts({name: {"n": n} for name, n in found.n.items()})
    respond(json, {"pipeline": declared.name, **facts, "tables": tables}, shown)
