"""What the verb shows a person, and its answer for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.table import Table

from headgate.cli.options import command
from headgate.cli.output import Shown, grid
from headgate.cli.rows import as_text, cells, rows_shown
from headgate.declaration.quantities import plural, size_text
from headgate.history.backfill.report import BackfillReport, TableReport

if TYPE_CHECKING:
    from headgate.history.backfill.plan import BackfillPlan
    from headgate.history.backfill.running import BackfillScope

_MARKS = {"equal": "✓", "differs": "✗", "empty": "-"}
Finals = Callable[[str], "tuple[datetime, datetime] | None"]
"""Returns the time range of the final windows of a gold table; None if it has none."""


def shown(report: BackfillReport, finals: Finals) -> Iterator[Shown]:
    """The report: counts and digests of every table, then what differs."""
    headers = ("gold", "batch:", "windows:", "equal:", "changed:", "new:", "gone:")
    rows = ((t.table, t.n, t.windows, t.equal, t.changed, t.new, t.gone) for t in report.tables)
    yield grid("", *headers, rows=rows)
    yield f"computed by {report.computed_by}"
    for table in report.tables:
        yield from _of_table(table)
        if table.result == "empty":
            yield f"  {final_windows(finals(table.table))}"
    published = report.published
    if published is None:
        return
    if done := report.taken_over:
        yield f"published: {', '.join(f'gold.{name}' for name in done)}"
    for name in published.waiting:
        yield f"gold.{name} is not published yet: a rule of its gate holds it"
    for name in published.void:
        yield (
            f"gold.{name}: nothing was published, because another operation has changed the table "
            "since it was compared; type the command again"
        )


def next_steps(asked: BackfillScope, report: BackfillReport) -> Iterator[str]:
    """How to take a publication back, and how to change later windows as well."""
    if report.published is None:
        return
    for name in report.published.waiting:
        yield f"see the rows, then release or reject them: {command('gate show', f'gold.{name}')}"
    back = command("savepoint restore", report.published.savepoint)
    if report.taken_over:
        yield f"to take it back, stop the pipeline, and then: {back}"
    if asked.used.file != asked.deployed.file:
        yield (
            f"the stream computes later windows by {asked.deployed.file.name} as before; "
            f"to change them, too, make the change there, and then: {command('upgrade')}"
        )


def final_windows(found: tuple[datetime, datetime] | None) -> str:
    """The time range of the final windows, as text."""
    if found is None:
        return "none of its windows is final yet"
    return f"its final windows are from {as_text(found[0])} to {as_text(found[1])}"


def listed(reports: Sequence[BackfillReport], back: Collection[str]) -> Table:
    """A line for each backfill. ``back`` are the ids of the backfills that were taken back."""
    found = grid(
        *("", "backfill", "windows", "from", "to", "gold", "declaration", "result", "published")
    )
    for report in reports:
        tables = ", ".join(table.table for table in report.tables)
        said = _publication(report, is_back=report.id in back)
        times = as_text(report.begin), as_text(report.end) if report.end else ""
        which = "by their end" if report.by_end else "whole"
        found.add_row(*cells(report.id, which, *times, tables, report.file, report.result, said))
    return found


def _publication(report: BackfillReport, *, is_back: bool) -> str:
    """Which tables have the rows of a backfill, in a line of the list."""
    if (published := report.published) is None:
        return ""
    said = [f"as operation {published.operation}"] if report.taken_over else []
    said += ["taken back by a restore"] if said and is_back else []
    for names, what in ((published.waiting, "waits"), (published.rejected, "rejected")):
        said += [f"{', '.join(f'gold.{name}' for name in names)} {what}"] if names else []
    return ", ".join(said)


def _of_table(table: TableReport) -> Iterator[Shown]:
    mark, name = _MARKS[table.result], f"gold.{table.table}"
    if table.result == "equal":
        yield f"{mark} {name} is equal: {table.live}"
    elif table.result == "empty":
        yield f"{mark} {name} has no final window in this range: nothing was compared"
    else:
        yield f"{mark} {name} differs: {table.live} is there, {table.backfilled} was computed"
    for id_ in table.earlier:
        yield f"  backfill {id_} was published into this range before"
    for column in table.columns:
        most = "" if column.largest is None else f", by at most {column.largest:g}"
        yield f"  {column.column} differs in {plural(column.rows, 'row')}{most}"
    if table.rows.rows:
        yield rows_shown(rows := table.rows.first(), "computed")
        yield f"  {rows.count}"


def plan_document(
    asked: BackfillScope, plan: BackfillPlan, windows: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    """What a backfill would read, as plain values."""
    return {
        "pipeline": asked.deployed.name,
        "from": asked.begin.isoformat(),
        "to": asked.end.isoformat() if asked.end else None,
        "by_end": asked.by_end,
        "files": len(plan.read),
        "rows": sum(file.rows for file in plan.read),
        "bytes": sum(file.size for file in plan.read),
        "steps": sum(map(len, plan.steps.values())),
        "tables": [
            {
                "table": f"gold.{each.table}",
                "n": each.n,
                "windows": windows[each.table][0],
                "rows": windows[each.table][1],
            }
            for each in plan.targets
        ],
    }


def plan_shown(document: Mapping[str, Any]) -> Iterator[Shown]:
    until = document["to"] or "the last final window"
    if document["by_end"]:
        yield f"windows that end after {document['from']} and up to {until}; nothing was computed"
    else:
        yield f"from {document['from']} to {until}; nothing was computed"
    rows, files, steps = (f"{document[name]:,}" for name in ("rows", "files", "steps"))
    size = size_text(document["bytes"])
    yield f"rows of bronze to read: {rows} ({size}); files: {files}; steps: {steps}"
    tables = ((t["table"], t["n"], t["windows"], t["rows"]) for t in document["tables"])
    yield grid("", "gold", "batch:", "windows:", "rows:", rows=tables)
