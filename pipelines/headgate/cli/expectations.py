"""``headgate expectations list | profile | export | import``: the suites of tables."""

from __future__ import annotations

import json as jsons
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli import declaration
from headgate.cli.declaration import named
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import grid, respond, write_new
from headgate.cli.rows import cells
from headgate.commands import pipeline_command, rendered, shell_command
from headgate.declaration.contracts.operator import gold_columns, key_of_gold
from headgate.declaration.expectations import profiling
from headgate.declaration.expectations.exporting import exported, left_out
from headgate.declaration.expectations.importing import imported
from headgate.declaration.expectations.written import suite_text
from headgate.declaration.kinds import SILVER
from headgate.declaration.model import GoldTable, Pipeline, SilverTable
from headgate.declaration.names import Columns
from headgate.declaration.quantities import plural
from headgate.declaration.suites.model import Suite, count_key
from headgate.declaration.suites.plan import asked, suite_plan
from headgate.errors import HeadgateError, UsageError, cause_of
from headgate.insight.querying.sql import select
from headgate.insight.querying.without_pandas import leave_pandas_out
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table

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


def list_suites(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """List the rules of a pipeline's tables, and how many rows of silver broke each since the table
    began."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    suites = [
        _suite(f"silver.{name}", table.suite, _totals(declared, layout, name))
        for name, table in declared.silver.items()
        if table.suite is not None
    ]
    suites += [
        _suite(f"gold.{name}", table.suite, None)
        for name, table in declared.gold.items()
        if table.suite is not None
    ]
    shown = grid("", "table", "rule", "action", "severity", "broken:", "asks")
    for suite in suites:
        for rule in suite["rules"]:
            broken = "-" if rule["broken"] is None else rule["broken"]
            asks = rule.get("condition") or asked(rule["expectation"], rule["arguments"])
            said = (rule["id"], _action(rule), rule["severity"], broken, asks)
            shown.add_row(*cells(suite["table"], *said))
    document = {"pipeline": declared.name, "suites": suites}
    respond(json, document, shown if suites else f"no table of {declared.name} has a suite")


def _suite(table: str, suite: Suite, totals: Mapping[str, int] | None) -> dict[str, Any]:
    """``broken`` is None if nothing is counted: for gold, whose rules are about versions, and for a
    table that does not exist yet."""
    planned = suite_plan(suite)["suite"]
    rules = [
        {"id": id_, **rule, "broken": None if totals is None else totals.get(count_key(id_), 0)}
        for id_, rule in planned["rules"].items()
    ]
    return {"table": table, "suite": suite.name, "digest": suite.digest, "rules": rules}


def _action(rule: Mapping[str, Any]) -> str:
    above = f" above {rule['above'] * 100:g} %" if "above" in rule else ""
    return f"{rule['action']}{above}"


def _totals(declared: Pipeline, layout: Layout, name: str) -> Mapping[str, int] | None:
    """The counts of a silver table so far; None if the table does not exist yet."""
    leave_pandas_out()
    table = Table(layout.storage, SILVER.path(name), pipeline=declared.name)
    return table.refresh().total if table.exists else None


app = typer.Typer(
    help="The rules that rows must meet, and Great Expectations.", no_args_is_help=True
)
app.command("list")(list_suites)


@app.command("profile")
def profile(
    pipeline: PipelineName, table: TableName, output: Output = None, root: Root = DEFAULT_ROOT
) -> None:
    """Propose a suite that all rows of a table meet. Its rules only warn."""
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    named = table_of(declared, table)
    columns = named.types
    layer = table.partition(".")[0]
    path = f'{layer}."{named.name}"'
    _, [row] = select(declared, layout, profiling.statistics_sql(path, columns))
    rows, found = profiling.profile(row, columns)
    if not rows:
        raise HeadgateError(
            f"{table} has no rows, and nothing can be proposed",
            remedy=f"let it have some first: {pipeline_command('run', '--once')}",
        )
    if repeated := profiling.few(rows, found):
        _, [values] = select(declared, layout, profiling.values_sql(path, repeated))
        found = profiling.with_values(found, dict(zip(repeated, values, strict=True)))
    rules, left_out = profiling.proposed(rows, found, _keys(named))
    of = f"{plural(rows, 'row')} of {table}"
    head = [f"Proposed from {of}, which all meet it. Keep what must be true."]
    if left_out:
        head.append(f"A suite has at most {len(rules)} rules; {left_out} more were left out.")
    _give_suite(suite_text(rules, *head), output, len(rules), table)


def _keys(table: SilverTable | GoldTable) -> tuple[str, ...]:
    """The columns that identify a row of a gold table; empty for silver."""
    if not isinstance(table, GoldTable):
        return ()
    return key_of_gold(table)


@app.command("export")
def export(
    pipeline: PipelineName, table: TableName, output: Output = None, root: Root = DEFAULT_ROOT
) -> None:
    """Print a table's suite as the JSON of a suite of Great Expectations."""
    declared, _ = declaration.opened(pipeline, root, needs_secrets=False)
    named = table_of(declared, table)
    if named.suite is None:
        raise UsageError(
            f"{table} has no suite",
            remedy=f"propose one: {pipeline_command('expectations profile', table)}",
        )
    document = exported(named.suite, columns_of(declared, named))
    for rule in left_out(named.suite):
        print(f"left out {rule}", file=sys.stderr)
    text = jsons.dumps(document, indent=2, ensure_ascii=False) + "\n"
    _give(text, output, len(document["expectations"]))


@app.command("import")
def import_suite(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.json",
            help="A suite, as Great Expectations keeps it.",
            show_default=False,
        ),
    ],
    output: Output = None,
    skip_unsupported: Annotated[
        bool,
        typer.Option("--skip-unsupported", help="Leave out rules that Headgate does not support."),
    ] = False,
    gold: Annotated[
        bool, typer.Option("--gold", help="For a gold table: rules look at its versions.")
    ] = False,
) -> None:
    """Print a suite of Great Expectations as one of Headgate."""
    found = imported(_text(file), str(file), of_gold=gold)
    table, side = ("gold.TABLE", "versions") if gold else ("silver.TABLE", "rows")
    listed = "\n".join(map(str, found.unsupported))
    total = len(found.rules) + len(found.unsupported)
    said = f"{file}: {len(found.unsupported)} of {total} expectations are not supported for {side}:"
    if found.unsupported and not skip_unsupported:
        again = ["--gold"] * gold + ["--skip-unsupported"]
        without = shell_command("expectations import", str(file), *again, rooted=False)
        raise UsageError(f"{said}\n{listed}", remedy=f"change them, or leave them out: {without}")
    if found.unsupported:
        print(f"left out of {said}\n{listed}", file=sys.stderr)
    if not found.rules:
        raise UsageError(
            f"{file} has no expectation that rules of {side} can ask",
            remedy="propose a suite from a table's rows: "
            + pipeline_command("expectations profile", table),
        )
    text = suite_text(found.rules, f"The suite {found.name} of Great Expectations.")
    _give_suite(text, output, len(found.rules), table)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {cause_of(error)}", remedy="name the JSON of a suite"
        ) from error


def _give(text: str, output: Path | None, rules: int) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    write_new(output, text)
    print(f"wrote {output}: {rules} rules")


def _give_suite(text: str, output: Path | None, rules: int, table: str) -> None:
    """As ``_give``. If the suite goes into a file, say how to use it."""
    _give(text, output, rules)
    if output is not None:
        print(f"to use it, write in the declaration, under {table}: expectations: {output.stem}")
        print(rendered(f"then see what would run: {pipeline_command('plan')}"))
