"""``headgate backfill``: computes, compares, shows the report, and publishes if requested."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.backfill.computing import compute_here, publish_here, require_expected
from headgate.cli.backfill.screen import (
    final_windows,
    listed,
    next_steps,
    plan_document,
    plan_shown,
    shown,
)
from headgate.cli.declaration import gold_table
from headgate.cli.options import (
    DEFAULT_ROOT,
    Json,
    Note,
    PipelineName,
    Root,
    command,
    time_option,
    time_range,
)
from headgate.cli.output import respond
from headgate.commands import pipeline_command
from headgate.declaration.contracts.operator import backfilled_tables, bounds_of
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.errors import UsageError
from headgate.history.backfill.compatibility import require_compatible, require_windows
from headgate.history.backfill.report import backfill_reports, taken_back_reports, with_publications
from headgate.insight.lineage.emitting import send_backfill
from headgate.insight.querying.sql import select
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable

if TYPE_CHECKING:
    from headgate.history.backfill.running import BackfillScope


Tables = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TABLE", help="Such as gold.per_minute. Default: all.", show_default=False
    ),
]
From = Annotated[
    str | None,
    time_option(
        "--from",
        'Windows that begin at or after it, unless --by-end is given: "2026-01-31 12:00", or '
        '"2 days" ago. UTC.',
    ),
]
To = Annotated[str | None, time_option("--to", "Windows that end at or before it. Default: all.")]
ByEnd = Annotated[
    bool,
    typer.Option(
        "--by-end",
        help="Windows that end after --from and at or before --to, also those that begin before "
        "--from.",
    ),
]
Other = Annotated[
    Path | None,
    typer.Option(
        "--declaration",
        metavar="FILE",
        help="Compute by this changed declaration, which makes the same columns.",
    ),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="TABLE=DIGEST",
        help="With --publish: only if the computed rows of the table have this digest, which an "
        "earlier report shows; else exit code 11. Once for each table that may be published.",
        show_default=False,
    ),
]


def backfill(
    pipeline: PipelineName,
    tables: Tables = None,
    begin: From = None,
    end: To = None,
    by_end: ByEnd = False,
    other: Other = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be read, and compute nothing.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Exit code 11 if a row differs; publish nothing.")
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Put the rows that differ into the gold tables.")
    ] = False,
    expect: Expect = None,
    note: Note = "",
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Compute final windows again from bronze, and compare. The stream may run meanwhile.

    The rows of a range of event time that differ can be published, in one commit per table.
    Without --from, earlier backfills are listed. Exit code 1 if no final window is in the range.
    """
    if sum((dry_run, verify, publish)) > 1:
        raise typer.BadParameter("only one of --dry-run, --verify and --publish can be given")
    if expect and not publish:
        raise typer.BadParameter("only with --publish", param_hint="--expect")
    expected = expected_of(expect)
    declared, layout = declaration.opened(pipeline, root, needs_secrets=begin is not None)
    if begin is None:
        if tables or end or by_end or other or dry_run or verify or publish:
            raise typer.BadParameter("it is needed, to say from when on", param_hint="--from")
        _list(layout, declared, json=json)
        return
    asked = asked_of(declared, tables, begin, end, other, datetime.now(UTC), by_end=by_end)
    if expected is not None and (others := [*expected.keys() - {*asked.tables}]):
        raise typer.BadParameter(
            f"{', '.join(sorted(others))} is not computed", param_hint="--expect"
        )
    if dry_run:
        _show_plan(layout, asked, json=json)
        return

    check = partial(require_expected, expected)
    publishing = publish_here(note) if publish else None
    outcome = compute_here(layout, asked, root, check=check, publish=publishing)
    report = outcome.report
    send_backfill(declared, layout, report, lambda text: print(text, file=sys.stderr))
    words = list(next_steps(asked, report))
    if report.differing and not publish and not verify:
        words = ["nothing was published; add --publish to put these rows into gold"]
    finals = partial(final_range, layout, asked)
    respond(json, report.document(), *shown(report, finals), *words)
    if report.result == "empty":
        raise typer.Exit(exit_codes.FAILED)
    if verify and report.result == "differs":
        raise typer.Exit(exit_codes.DIFFERS)
    if report.published is not None and report.published.waiting:
        raise typer.Exit(exit_codes.HELD)
    if report.published is not None and report.published.void:
        raise typer.Exit(exit_codes.FAILED)


def _list(layout: Layout, declared: Pipeline, *, json: bool) -> None:
    found, back = tuple(backfill_reports(layout)), frozenset[str]()
    if found:
        decisions = ControlTable.of(layout.storage, declared.name).refresh()
        found = with_publications(layout, declared.name, found, decisions)
        back = taken_back_reports(found, decisions)
    shown = listed(found, back) if found else "there was no backfill"
    words = [] if found else [command("backfill", "--from", "2 days", "--dry-run")]
    documents = [report.document() for report in found]
    document = {"pipeline": declared.name, "backfills": documents, "taken_back": sorted(back)}
    respond(json, document, shown, *words)


def _show_plan(layout: Layout, asked: BackfillScope, *, json: bool) -> None:
    from headgate.history.backfill.running import preview_backfill

    _, plan = preview_backfill(layout, asked)
    windows = windows_of(layout, asked)
    document = plan_document(asked, plan, windows)
    words = [
        f"gold.{name} has no final window in this range: "
        + final_windows(final_range(layout, asked, name))
        for name, (number, _) in windows.items()
        if not number
    ]
    respond(json, document, *plan_shown(document), *words)
    if not any(number for number, _ in windows.values()):
        raise typer.Exit(exit_codes.FAILED)


def asked_of(
    declared: Pipeline,
    tables: Sequence[str] | None,
    begin: str,
    end: str | None,
    other: Path | None,
    now: datetime,
    *,
    by_end: bool = False,
) -> BackfillScope:
    """Raises BadParameter, UsageError, DeclarationError, OtherDeclarationError."""
    from headgate.history.backfill.running import BackfillScope

    first, last = time_range(begin, end, now)
    assert first is not None
    names = [gold_table(declared, name).name for name in tables or backfilled_tables(declared)]
    if not names:
        raise UsageError(
            f"{declared.name} has no table that can be backfilled: none has windows",
            remedy=f"see its tables: {pipeline_command('plan')}",
        )
    used = declared if other is None else load(other)
    for name in names:
        if (above := declared.gold[name].reads) is not None:
            raise UsageError(
                f"gold.{name} reads gold.{above}, and what a backfill corrects there corrects it",
                remedy=f"name that table: {pipeline_command('backfill', f'gold.{above}')}",
            )
        if name not in backfilled_tables(declared):
            raise UsageError(
                f"gold.{name} cannot be backfilled yet: it has no windows",
                remedy="compute all of its rows again from silver: "
                + pipeline_command("run", "--full-refresh", f"gold.{name}"),
            )
        require_windows(declared.gold[name])
        if used is not declared:
            require_compatible(declared, used, name)
    return BackfillScope(declared, used, tuple(dict.fromkeys(names)), first, last, by_end)


def expected_of(given: Sequence[str] | None) -> Mapping[str, str] | None:
    """The digests that computed rows must have, by table; None if there is no condition. Raises
    BadParameter."""
    found: dict[str, str] = {}
    for each in given or ():
        name, _, digest = each.removeprefix("gold.").partition("=")
        if not (name and digest):
            raise typer.BadParameter(f"{each!r} is not TABLE=DIGEST", param_hint="--expect")
        if found.setdefault(name, digest) != digest:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--expect")
    return found or None


def windows_of(layout: Layout, asked: BackfillScope) -> Mapping[str, tuple[int, int]]:
    """The number of final windows in the range and of their rows, by table."""
    found = {}
    for name in asked.tables:
        begin, end = bounds_of(asked.deployed.gold[name])
        since = f"{end} > " if asked.by_end else f"{begin} >= "
        within = f"final AND {since}{_literal(asked.begin)}"
        if asked.end is not None:
            within += f" AND {end} <= {_literal(asked.end)}"
        sql = f"SELECT count(DISTINCT {begin}), count(*) FROM gold.{name} WHERE {within}"
        ((windows, rows),) = select(asked.deployed, layout, sql)[1]
        found[name] = (int(windows), int(rows))
    return found


def final_range(
    layout: Layout, asked: BackfillScope, name: str
) -> tuple[datetime, datetime] | None:
    """The time range of the final windows of a gold table; None if it has none."""
    begin, end = bounds_of(asked.deployed.gold[name])
    sql = f"SELECT min({begin}), max({end}) FROM gold.{name} WHERE final"
    ((first, last),) = select(asked.deployed, layout, sql)[1]
    return None if first is None else (first, last)


def _literal(time: datetime) -> str:
    return f"TIMESTAMPTZ '{time:%Y-%m-%d %H:%M:%S.%f}+00'"
