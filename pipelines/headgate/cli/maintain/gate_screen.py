"""What ``headgate gate`` shows of a held version."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.cli.options import command
from headgate.declaration.model import GoldTable
from headgate.gates.documents import Hold
from headgate.supervision.held_versions import HeldVersion, reasons


def why(hold: Hold, table: GoldTable) -> Iterator[str]:
    """The rules that hold a version: what was observed, and what each demands."""
    for result, asked in reasons(hold, table):
        yield f"  {result}"
        if asked is not None:
            yield f"    expected: {asked}"


def rows_count(found: HeldVersion) -> str:
    """How many rows break the rules."""
    is_counted = found.rows.total is not None
    return found.count + ("" if is_counted else "; too many to release them for later versions")


def next_steps(hold: Hold, *, is_rebuilt: bool) -> Iterator[str]:
    """The commands that end a hold. ``is_rebuilt``: the table and its rebuild are both held."""
    table = f"gold.{hold.table}"
    which = ["--rebuild"] if hold.log else ["--current"] if is_rebuilt else []
    yield command("gate show", table, *which)
    yield command("gate release", table, *which, "--reason", "WHY")
    if hold.is_of_operation:
        yield command("gate reject", table, "--reason", "WHY")
