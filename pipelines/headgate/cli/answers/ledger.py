"""``headgate ledger``: what became of every event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli import declaration, exit_codes
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import console, grid, print_json
from headgate.cli.rows import cells, shown
from headgate.cli.without_pandas import leave_pandas_out
from headgate.storage.layout import Layout

if TYPE_CHECKING:
    from rich.console import Console

    from headgate.ledger.account import Ledger
    from headgate.ledger.by_id import Proof

MARK = {True: "[green]✓[/]", False: "[red]✗[/]"}


def ledger(
    pipeline: PipelineName,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Prove it from the tables, event by event.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Account for every event. Exit code 1 and the missing ids when it does not balance."""
    leave_pandas_out()
    from headgate.ledger import balance

    declared = declaration.load(pipeline)
    layout = Layout.of(root, declared.name)
    account, proof = balance(layout, declared), None
    if by_id:
        from headgate.cli.life.screen import waiting
        from headgate.ledger.by_id import by_id as prove

        with waiting("reading every table"):
            proof = prove(layout, declared)
    balanced = account.balanced and (proof is None or proof.holds)
    if json:
        document: dict[str, Any] = account.as_dict() | {"balanced": balanced}
        print_json(document | ({"by_id": proof.as_dict()} if proof else {}))
    else:
        show_ledger(account, console())
        if proof:
            show_proof(proof, console())
    if not balanced:
        raise typer.Exit(exit_codes.DOES_NOT_BALANCE)


def show_ledger(account: Ledger, out: Console) -> None:
    """The account as tables, one row per table of the pipeline."""
    out.print(
        f"[bold]{account.pipeline}[/]  batch {account.n}  read {account.read:,}"
        f"  duplicate {account.duplicate:,}"
        + (f" ({account.differing:,} differing)" if account.differing else "")
        + (f"  generation {account.generation}" if account.generation else "")
    )
    silver = grid(
        "", "silver", "read:", "duplicate:", "quarantined:", "silver:", "filtered:", "lag:"
    )
    for s in account.silver:
        numbers = (s.read, s.duplicate, s.quarantined, s.silver, s.filtered, s.lag)
        silver.add_row(s.table, *(f"{number:,}" for number in numbers))
    gold = grid("", "gold", "pairs:", "folded:", "late:", "rows:", "final:", "lag:")
    for g in account.gold:
        numbers = (g.pairs, g.folded, g.late, g.rows, g.final, g.lag)
        gold.add_row(g.table, *(f"{number:,}" for number in numbers))
    for table in (silver, gold):
        if table.row_count:
            out.print(table)
    if account.corrected:
        out.print(
            f"quarantined {account.quarantined:,}, of these {account.corrected:,} corrected later"
        )
    if account.gaps:
        gaps = grid("", "gaps", "offsets", "reason")
        for gap in account.gaps:
            gaps.add_row(*cells(f"{gap.topic}/{gap.partition}", gap.offsets, gap.reason))
        out.print(gaps)
    for file in account.files or ():
        said = f"{file.path}: {file.status.replace('_', ' ')}: {file.reason}"
        out.print(f"file {file.sequence} {shown(said)}", markup=False)
    for d in account.differences:
        out.print(f"[red]{d}[/]")
    says = "every event is accounted for" if account.balanced else "does not balance"
    out.print(f"{MARK[account.balanced]} {says}")


def show_proof(proof: Proof, out: Console) -> None:
    """What the tables themselves say; of whatever is wrong, the first positions and ids."""
    for finding in proof.findings:
        out.print(f"[red]{finding.table}: {finding.problem}: {finding.count:,}[/]")
        for place in finding.examples:
            out.print(f"  {shown(place)}", markup=False)
    says = f"proved by id: {proof.rows:,} rows of bronze" if proof.holds else "not so by id"
    out.print(f"{MARK[proof.holds]} {says}")
