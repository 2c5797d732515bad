"""The results of ``compact`` and ``vacuum`` as text."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.cli.output import console, grid, size_of
from headgate.cli.rows import cells
from headgate.declaration.kinds import BRONZE, SILVER, kind_of
from headgate.declaration.quantities import plural
from headgate.maintenance.report import Amount, Compacted, Report, Vacuumed
from headgate.maintenance.retention import LOG_WHY, WHY


def show_compacted(reports: Sequence[Report]) -> None:
    done = [report for report in reports if isinstance(report, Compacted)]
    headers = ("table", "merged:", "size:", "into:", "size:", "small files left:")
    rows = ((e.table, *_amount(e.merged), *_amount(e.into), e.small.files) for e in done)
    console().print(grid("", *headers, rows=rows))
    merged = sum((each.merged for each in done), Amount())
    into = sum((each.into for each in done), Amount())
    if not merged.files:
        print("nothing to merge: no table has enough small files that all others have processed")
        return
    became = f"{plural(merged.files, 'file')} became {into.files:,}"
    print(f"{became}; vacuum removes what they were made from")


def show_vacuumed(reports: Sequence[Report], *, dry_run: bool) -> None:
    done = [report for report in reports if isinstance(report, Vacuumed)]
    headers = ("table", "removed:", "size:", "in use:", "size:", "kept:", "size:")
    table = grid("", *headers, "log entries removed:", "log from:", "because of")
    for each in done:
        kept = sum((a for reason, a in each.kept.items() if reason != "live"), Amount())
        amounts = (each.removed, each.kept.get("live", Amount()), kept)
        numbers = [number for amount in amounts for number in _amount(amount)]
        log = (each.entries, each.log_from, LOG_WHY[each.log_why])
        table.add_row(*cells(each.table, *numbers, *log))
    console().print(table)
    for each in done:
        for reason, amount in each.kept.items():
            if reason != "live":
                print(f"{each.table}: {_files(amount)} kept: {WHY[reason]}")
    removed = sum((each.removed for each in done), Amount())
    print(f"{_files(removed)} {'would be removed' if dry_run else 'removed'}")
    if any(each.entries for each in done if kind_of(each.table) in (BRONZE, SILVER)):
        print("a later rebuild reads the oldest batches of bronze and silver in one step")


def _files(amount: Amount) -> str:
    return f"{plural(amount.files, 'file')} ({size_of(amount.bytes)})"


def _amount(amount: Amount) -> tuple[int, str]:
    return amount.files, size_of(amount.bytes)
