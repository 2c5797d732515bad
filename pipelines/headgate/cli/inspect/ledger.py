"""``headgate ledger``: accounts for every event."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.ledger_screen import MARK, show_ledger
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import Shown, console, respond
from headgate.cli.rows import shown
from headgate.cli.screen import waiting
from headgate.declaration.quantities import plural
from headgate.ledger import balance
from headgate.ledger.by_id import Proof
from headgate.ledger.by_id import by_id as prove
from headgate.querying.without_pandas import leave_pandas_out


def ledger(
    pipeline: PipelineName,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Prove it from the tables, event by event.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Account for every event. Exit code 1 if the ledger does not balance.

    With --by-id, it names the first positions and ids that differ.
    """
    leave_pandas_out()
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    account, proof = balance(layout, declared), None
    if by_id:
        with waiting("reading every table"):
            proof = prove(layout, declared)
    balanced = account.balanced and (proof is None or proof.holds)
    document: dict[str, Any] = account.as_dict() | {"balanced": balanced}
    shown: list[Shown] = [lambda: show_ledger(account, console())]
    if proof is not None:
        document["by_id"] = proof.as_dict()
        shown.append(partial(show_proof, proof, console()))
    elif not balanced:
        shown.append(f"see which rows differ: {command('ledger', '--by-id')}")
    respond(json, document, *shown)
    if not balanced:
        raise typer.Exit(exit_codes.FAILED)


def show_proof(proof: Proof, out: Console) -> None:
    """The result of the proof, with the first positions and ids of each problem."""
    for finding in proof.findings:
        out.print(f"[red]{finding.table}: {finding.problem}: {finding.count:,}[/]")
        for place in finding.examples:
            out.print(f"  {shown(place)}", markup=False)
    says = (
        f"proved by id: {plural(proof.rows, 'row')} of bronze"
        if proof.holds
        else "not proved by id"
    )
    out.print(f"{MARK[proof.holds]} {says}")
