"""Savepoints, as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from headgate.cli.output import console, grid, size_of
from headgate.cli.rows import cells
from headgate.declaration.model import Pipeline
from headgate.savepoints.savepoint import Savepoint
from headgate.savepoints.store import Unreadable
from headgate.tables.state import time_of

REREAD_ONLY = "with --reread only"
"""Shown for a savepoint that is later than the batch to which bronze was reset."""


def show_list(
    declared: Pipeline, found: Sequence[Savepoint | Unreadable], reread_only: Collection[str]
) -> None:
    """``reread_only`` are the ids of the savepoints that can be restored only with ``--reread``."""
    table = grid("", "id", "taken", "batch:", "rows:", "size:", "declaration", "note")
    for each in found:
        if isinstance(each, Savepoint):
            same = "this one" if each.definition == declared.digest else "another"
            note = "; ".join(
                [REREAD_ONLY] * (each.id in reread_only) + [each.note] * bool(each.note)
            )
            numbers = (each.n, each.rows, size_of(each.bytes))
            table.add_row(*cells(each.id, each.created, *numbers, same, note))
        else:
            table.add_row(*cells(each.id, "damaged", "", "", "", "", each.why))
    console().print(table)


def show_one(savepoint: Savepoint, *, reread_only: bool) -> None:
    out = console()
    out.print(f"savepoint {savepoint.id}", style="bold", markup=False)
    for name, value in (
        ("taken", f"{savepoint.created:%F %T}Z"),
        ("note", savepoint.note or "-"),
        ("batch", f"{savepoint.n:,}"),
        ("generation", str(savepoint.generation)),
        ("declaration", savepoint.definition[:16]),
        ("source", _offsets(savepoint)),
        ("watermark", _clock(savepoint)),
        ("engine", savepoint.engine),
        *([("restore", REREAD_ONLY)] if reread_only else ()),
    ):
        out.print(f"  {name:<12} {value}", markup=False, soft_wrap=True)
    table = grid("", "table", "version:", "batch:", "generation:", "rows:", "size:")
    for path, saved in savepoint.tables.items():
        numbers = (saved.version, saved.n, saved.generation, saved.rows, size_of(saved.bytes))
        table.add_row(*cells(path, *numbers))
    out.print(table)


def described(each: Savepoint | Unreadable, *, reread_only: bool = False) -> dict[str, Any]:
    if not isinstance(each, Savepoint):
        return {"id": each.id, "damaged": each.why}
    return {
        "id": each.id,
        "pipeline": each.pipeline,
        "created": each.created.isoformat(),
        "note": each.note,
        "n": each.n,
        "generation": each.generation,
        "definition": each.definition,
        "offsets": dict(each.offsets),
        "rows": each.rows,
        "bytes": each.bytes,
        "reread_only": reread_only,
    }


def _offsets(savepoint: Savepoint) -> str:
    if (sequence := savepoint.offsets.get("sequence")) is not None:
        return f"files up to {sequence:,}"
    return ", ".join(f"{p}: {o:,}" for p, o in savepoint.offsets.items()) or "nothing yet"


def _clock(savepoint: Savepoint) -> str:
    if savepoint.watermark is None:
        return "-"
    return f"{time_of(savepoint.watermark):%F %T}Z"
