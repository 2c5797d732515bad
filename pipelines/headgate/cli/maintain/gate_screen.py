"""What ``headgate gate`` shows of a held version."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from headgate.cli.options import command
from headgate.cli.output import grid
from headgate.cli.rows import as_text, cells
from headgate.declaration.model import GoldTable
from headgate.declaration.suites.plan import asked
from headgate.gates.documents import Hold, ShownRows
from headgate.storage.documents import Document, encoded


def document_of(hold: Hold) -> Document:
    """A hold for programs, without what a release of it accepts."""
    found = encoded(hold)
    results = [{k: v for k, v in each.items() if k != "accepts"} for each in found["results"]]
    return {**found, "results": results}


def reasons(hold: Hold, table: GoldTable) -> Iterator[str]:
    """The rules that hold a version: what was observed, and what each demands."""
    rules = {rule.id: rule for rule in table.suite.rules} if table.suite is not None else {}
    for result in hold.failed:
        yield f"  {result}"
        if (rule := rules.get(result.rule)) is not None:
            yield f"    expected: {rule.sql or asked(rule.expectation, rule.arguments)}"


def rows_shown(found: ShownRows) -> Table:
    """The rows that break rules. A value that readers see otherwise is shown as OLD -> NEW."""
    shown = grid("", "breaks", "row", *found.columns)
    for row in found.rows:
        values = map(_value, row.values, row.before or row.values)
        what = "new" if row.before is None else "changed" if row.before != row.values else "seen"
        shown.add_row(*cells(", ".join(row.rules), what, *values))
    return shown


def count_of(found: ShownRows) -> str:
    """How many rows are shown, and of how many."""
    if not found.rows:
        return "no single row breaks these rules: they are about the whole table"
    shown, total = len(found.rows), found.total
    if total is None:
        return f"the first {shown:,} of many rows; too many to release them for later versions"
    rows = "row" if total == 1 else "rows"
    return f"{total:,} {rows}" if shown == total else f"the first {shown:,} of {total:,} {rows}"


def _value(new: str | None, old: str | None) -> str:
    return as_text(new) if new == old else f"{as_text(old)} -> {as_text(new)}"


def next_steps(hold: Hold, *, is_rebuilt: bool) -> Iterator[str]:
    """The commands that end a hold. ``is_rebuilt``: the table and its rebuild are both held."""
    table = f"gold.{hold.table}"
    which = ["--rebuild"] if hold.log else ["--current"] if is_rebuilt else []
    yield command("gate show", table, *which)
    yield command("gate release", table, *which, "--reason", "WHY")
    if hold.is_of_operation:
        yield command("gate reject", table, "--reason", "WHY")
