"""``headgate ledger``: accounts for every event. `run` and `demo` show the ledger, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.ledger_recompute import (
    From,
    Tables,
    To,
    ranges_of,
    recomputed,
    shown_again,
)
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import MARK, Shown, console, grid, respond
from headgate.cli.rows import shown
from headgate.cli.screen import waiting
from headgate.cli.sources import SourceLabels
from headgate.declaration.quantities import plural
from headgate.insight.querying.without_pandas import leave_pandas_out

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from headgate.insight.ledger.account import GoldAccount, Ledger, SilverAccount
    from headgate.insight.ledger.by_id import Proof


def show_ledger(account: Ledger, out: Console, *, is_early: bool = False) -> None:
    """The account as tables, one row per table of the pipeline. ``is_early``: the run was to read
    everything, but was stopped before."""
    labels = SourceLabels(account.sources)
    out.print(
        f"[bold]{account.pipeline}[/]"
        + ("" if labels.several else f"  batch {account.batches}")
        + f"  read {account.read:,}"
        + (f" ({account.replayed:,} of them replayed)" if account.replayed else "")
        + f"  duplicate {account.duplicate:,}"
        + (f" ({account.differing:,} differing)" if account.differing else "")
        + (f"  generation {account.generation}" if account.generation else "")
    )
    for table in _tables(account, labels):
        if table.row_count:
            out.print(table)
    if account.corrected:
        out.print(
            f"quarantined {account.quarantined:,}, of these {account.corrected:,} corrected later"
        )
    if account.replaced:
        out.print(
            f"rejected {account.rejected:,}, of these {account.replaced:,} replaced by a good copy"
        )
    if account.gaps:
        rows = (
            (f"{gap.topic}/{gap.partition}", *labels.cell(each.source), gap.offsets, gap.reason)
            for each in account.sources
            for gap in each.gaps
        )
        out.print(grid("", "gaps", *labels.header, "offsets", "reason", rows=rows))
    for each in account.sources:
        for file in each.files or ():
            line = f"{file.path}: {file.status.replace('_', ' ')}: {file.reason}"
            of = f"{labels.before(each.source)}file {file.sequence}"
            out.print(f"{of} {shown(line)}", markup=False)
    for d in account.differences:
        out.print(f"[red]{d}[/]")
    aside = account.set_aside
    good = "every event that was read" if is_early or aside else "every event"
    says = f"{good} is accounted for" if account.balanced else "does not balance"
    if aside:
        says += f"; the records of {plural(aside, 'file')} set aside are missing"
    out.print(f"{MARK[account.balanced]} {says}")


_OF_SOURCES = (
    "read",
    "replayed",
    "duplicate",
    "differing",
    "quarantined",
    "corrected",
)
_OF_SILVER = ("read", "duplicate", "quarantined", "rejected", "silver", "filtered", "lag")
_OF_ITEMS = ("empty", "exploded", "items")
_OF_GOLD = ("pairs", "folded", "late", "rows", "final", "lag")


def _tables(account: Ledger, labels: SourceLabels) -> Iterator[Table]:
    """A table for the sources, if there are several, and one for each layer."""
    if labels.several:
        rows = ((each.source, each.n, *_counts(each, _OF_SOURCES)) for each in account.sources)
        yield grid("", "source", "batch:", *(f"{name}:" for name in _OF_SOURCES), rows=rows)
    silver: Sequence[str] = _OF_SILVER
    if any(each.items is not None for each in account.silver):
        silver = (*_OF_SILVER[:3], *_OF_ITEMS, *_OF_SILVER[3:])
    layers: tuple[tuple[str, Iterable[SilverAccount | GoldAccount], Sequence[str]], ...] = (
        ("silver", account.silver, silver),
        ("gold", account.gold, _OF_GOLD),
    )
    for layer, tables, names in layers:
        rows = ((t.table, *labels.cell(t.source), *_counts(t, names)) for t in tables)
        yield grid("", layer, *labels.header, *(f"{name}:" for name in names), rows=rows)


def _counts(account: object, names: Sequence[str]) -> Iterator[object]:
    return (getattr(account, name) for name in names)


def summary(account: Ledger, batches: int, seconds: float) -> dict[str, Any]:
    """The final document of ``run --json`` and ``demo --json``. Counts are those of the tables
    since their beginning; ``batches`` and ``seconds`` are those of this run."""
    counts = ("read", "duplicate", "quarantined")
    sources = {s.source: {name: getattr(s, name) for name in counts} for s in account.sources}
    return {
        "pipeline": account.pipeline,
        "read": account.read,
        "duplicate": account.duplicate,
        "quarantined": account.quarantined,
        "rejected": account.rejected,
        **({"sources": sources} if account.has_several_sources else {}),
        "silver": {s.table: s.silver for s in account.silver},
        "filtered": account.filtered,
        "gold": {
            g.table: {"rows": g.rows, "folded": g.folded, "late": g.late} for g in account.gold
        },
        "balanced": account.balanced,
        "batches": batches,
        "seconds": round(seconds, 3),
    }


def ledger(
    pipeline: PipelineName,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Prove it from the tables, event by event.")
    ] = False,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", help="Compute gold again from silver and late, and compare."),
    ] = False,
    tables: Tables = None,
    begin: From = None,
    end: To = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Account for every event. Exit code 1 if the ledger does not balance.

    With --by-id, it names the first positions and ids that differ. With --recompute, it compares
    the rows of gold with those of their definition, and shows the first that differ.
    """
    from headgate.insight.ledger import balance
    from headgate.insight.ledger.by_id import by_id as prove

    leave_pandas_out()
    declared, layout = declaration.opened(pipeline, root, needs_secrets=False)
    ranges = ranges_of(declared, tables, begin, end, is_recomputed=recompute)
    account, proof = balance(layout, declared), None
    if by_id:
        with waiting("reading every table"):
            proof = prove(layout, declared)
    again = recomputed(declared, layout, ranges) if recompute else None
    balanced = all(each.holds for each in (proof, again) if each is not None) and account.balanced
    document: dict[str, Any] = account.as_dict() | {"balanced": balanced}
    shown: list[Shown] = [lambda: show_ledger(account, console())]
    if proof is not None:
        document["by_id"] = proof.as_dict()
        shown.append(partial(show_proof, proof, console()))
    elif not account.balanced:
        shown.append(f"see which rows differ: {command('ledger', '--by-id')}")
    if again is not None:
        document["recomputed"] = again.document()
        shown += shown_again(again)
    respond(json, document, *shown)
    if not balanced:
        raise typer.Exit(exit_codes.FAILED)


def show_proof(proof: Proof, out: Console) -> None:
    """The result of the proof, with the first positions and ids of each problem."""
    for finding in proof.findings:
        out.print(f"[red]{finding.table}: {finding.problem}: {finding.count:,}[/]")
        for place in finding.examples:
            out.print(f"  {shown(place)}", markup=False)
    several = len(proof.sources) > 1
    rows = (
        f"{plural(rows, 'row')} of bronze{f'.{source}' if several else ''}"
        for source, rows in proof.sources.items()
    )
    items = (f"{plural(items, 'item')} for {table}" for table, items in proof.items.items())
    says = f"proved by id: {', '.join((*rows, *items))}" if proof.holds else "not proved by id"
    out.print(f"{MARK[proof.holds]} {says}")
