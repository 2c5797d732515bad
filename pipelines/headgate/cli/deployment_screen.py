"""What a start does with existing tables, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headgate.cli.output import console, grid
from headgate.cli.rows import cells
from headgate.declaration.quantities import plural

if TYPE_CHECKING:
    from headgate.savepoints.deployment import Deployment

COLOUR = {"rebuild": "yellow", "reread": "yellow", "refuse": "red"}
COLOUR |= dict.fromkeys(("new", "extend"), "green")
MEANINGS = {
    "resume": "resume: every table continues from its position",
    "extend": "extend: columns get new fields, null in what was read before; nothing is rebuilt",
    "rebuild": "rebuild: the tables below are rebuilt, each from the table above it",
    "reread": "rebuild all: everything is read again from the source, which still holds it",
    "refuse": "refuse: bronze must be rebuilt, but the source no longer has all that was read",
}


def as_dict(found: Deployment) -> dict[str, Any] | None:
    if found.action == "new":
        return None
    return {
        "action": found.action,
        "engine": found.engine,
        "engine_changed": found.engine_changed,
        "tables": {p.table: {"action": p.action, "reasons": list(p.reasons)} for p in found.tables},
        "loads": [asdict(each) for each in found.loads],
    }


def show(found: Deployment, root: str) -> None:
    out = console()
    out.print()
    meaning = MEANINGS[found.action]
    if found.engine_changed:
        meaning = f"{meaning}; after a savepoint, since {found.engine} wrote them"
    out.print(f"deployed under {root}: {meaning}", markup=False, soft_wrap=True)
    table = grid("", "table", "", "because")
    for each in found.tables:
        action = f"[{COLOUR.get(each.action, 'dim')}]{each.action}[/]"
        table.add_row(*cells(each.table), action, *cells("; ".join(each.reasons)))
    out.print(table)
    if found.loads and found.action == "reread":
        loads = plural(len(found.loads), "load")
        out.print(f"then what bronze has of {loads} of history is read again:", markup=False)
        for load in found.loads:
            out.print(f"  {load.id}  {load.what}", markup=False, soft_wrap=True)
