"""The output of ``headgate status --checkpoint``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headgate.cli.options import command
from headgate.cli.output import console, grid, size_of
from headgate.cli.rows import cells
from headgate.declaration.kinds import name_of
from headgate.declaration.quantities import plural

if TYPE_CHECKING:
    from headgate.savepoints.checkpoints import Checkpoints


def as_dict(found: Checkpoints) -> dict[str, Any]:
    return {
        "n": found.n,
        "generation": found.generation,
        "history": [
            asdict(c) | {"committed": c.committed.isoformat(), "took": c.took.total_seconds()}
            for c in found.history
        ],
        "replay": [asdict(r) for r in found.replay],
        "operations": [asdict(o) for o in found.operations],
        "windows": [
            {"table": w.table, **_times(w.span), "rows": w.rows, "bytes": w.bytes}
            for w in found.windows
        ],
    }


def _times(span: tuple[datetime, ...]) -> dict[str, str]:
    return dict(zip(("start", "end"), (time.isoformat() for time in span), strict=False))


def show(found: Checkpoints) -> None:
    out, now = console(), datetime.now(UTC)
    table = grid("checkpoints", "batch:", "committed", "age:", "took:", "rows:", "size:")
    for each in found.history:
        age = f"{(now - each.committed).total_seconds():,.0f} s"
        took = f"{each.took.total_seconds():.2f} s"
        row = (each.n, each.committed, age, took, each.rows, size_of(each.bytes))
        table.add_row(*cells(*row))
    out.print(table)
    out.print(f"\nafter a crash now, from batch {found.n:,}:", markup=False)
    for lag in found.replay:
        message = f"{lag.table} processes {plural(lag.batches, 'batch')}, {plural(lag.rows, 'row')}"
        out.print(f"  {message}", markup=False)
    if not found.replay:
        out.print("  no table has anything to do again; a batch that runs is read again")
    for operation in found.operations:
        tables = ", ".join(operation.tables)
        place = f"operation {operation.number}, after batch {operation.n:,}"
        message = f"{place}: {tables} must {operation.what}"
        out.print(f"  {message}", markup=False)
    windows = (
        (w.table, " to ".join(f"{time:%F %T}Z" for time in w.span), w.rows, size_of(w.bytes))
        for w in found.windows
    )
    out.print(grid("\nopen windows", "table", "window", "rows:", "state:", rows=windows))
    for name in sorted({name_of(w.table) for w in found.windows}):
        # The layer is included: a table's name may be a keyword of SQL, such as "order".
        line = command("query", f"SELECT * FROM gold.{name} WHERE NOT final")
        out.print(line, style="dim", markup=False, soft_wrap=True)
