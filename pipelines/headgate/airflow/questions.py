"""What a person is asked before a version of gold becomes visible, or is given up, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.airflow.row_table import code, table
from headgate.commands import Place, pipeline_command, rendered

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.declaration.model import Pipeline
    from headgate.history.backfill.report import BackfillReport, TableReport
    from headgate.insight.status.held_versions import HeldVersion


def of_release(declared: Pipeline, held: Sequence[HeldVersion], place: Place) -> str:
    """Asks whether held versions may become visible."""
    parts = [part for each in held for part in _held(declared, each, place)]
    control = code(f"{declared.name}__control")
    parts.append(
        "*Approve* lets exactly these versions become visible. *Reject* changes nothing: the "
        "versions stay held, and are validated again."
    )
    if any(each.hold.is_of_operation for each in held):
        parts.append(
            "To give up a replay or a backfill for good, reject here, and trigger the action "
            f"*Reject* of {control}."
        )
    return "\n\n".join(parts)


def of_rejection(declared: Pipeline, held: Sequence[HeldVersion], place: Place) -> str:
    """Asks whether the operations that hold tables are given up."""
    parts = [part for each in held for part in _held(declared, each, place)]
    parts.append(
        "*Approve* gives these changes up for good: gold stays as readers see it now, and the late "
        "rows of a replay wait again. *Reject* changes nothing: the versions stay held."
    )
    return "\n\n".join(parts)


def of_publication(report: BackfillReport, begin: str, end: str, file: Path, place: Place) -> str:
    """Asks whether the rows that a backfill has computed, by the declaration ``file``, may replace
    those of gold."""
    parts = [
        f"In windows that end after {begin} and up to {end}, gold differs from what bronze gives. "
        f"Computed by {_declaration(report)}, in the backfill {code(report.id)}."
    ]
    for each in report.tables:
        parts += [*_differing(each, report, file, place)] if each.differing else []
    parts.append(
        "*Approve* publishes exactly these rows; a savepoint is taken before. *Reject* publishes "
        "nothing."
    )
    return "\n\n".join(parts)


def _held(declared: Pipeline, each: HeldVersion, place: Place) -> Iterator[str]:
    from headgate.insight.status.held_versions import reasons

    each = replace(each, rows=each.rows.first())
    hold, rows = each.hold, each.rows
    yield (
        f"{code(hold.title)}: {code(each.what)}, held since {hold.since:%F %T}Z. Computed by "
        f"{code(each.computed_by)}."
    )
    yield "\n".join(
        f"* {code(str(result))}" + (f" Expected: {code(asked)}" if asked else "")
        for result, asked in reasons(hold, declared.gold[hold.table])
    )
    if rows.rows:
        yield table(rows, "Held version")
    held = f"gold.{hold.table}"
    show = rendered(
        pipeline_command("gate show", held, "--rebuild")
        if hold.log  # the table and its rebuild may both be held
        else pipeline_command("gate show", held, "--current"),
        place,
    )
    is_all = not rows.rows or rows.is_whole
    yield each.count + ("." if is_all else f"; more of them: {code(show)}")


def _differing(
    each: TableReport, report: BackfillReport, file: Path, place: Place
) -> Iterator[str]:
    rows = each.rows.first()
    counts = f"{each.changed:,} changed, {each.new:,} new, {each.gone:,} gone"
    yield f"{code(f'gold.{each.table}')}: {counts}, {each.equal:,} equal."
    yield table(rows, "Computed")
    more = ["--by-end", "--from", report.begin.isoformat()]
    more += ["--to", report.end.isoformat()] if report.end else []
    more += [] if report.is_own else ["--declaration", str(file)]
    command = rendered(pipeline_command("backfill", f"gold.{each.table}", *more), place)
    yield rows.count + (
        "." if rows.is_whole else f"; a smaller range shows others of them: {code(command)}"
    )


def _declaration(report: BackfillReport) -> str:
    if report.is_own:
        return f"the pipeline's own declaration, {code(report.file)}"
    return f"**another declaration**, {code(report.file)}"
