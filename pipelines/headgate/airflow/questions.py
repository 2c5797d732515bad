"""What a person is asked before a version of gold becomes visible, or is given up, in Markdown.

Values of rows come from events. In a code span, neither Markdown nor HTML in them has any effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate.commands import Place, pipeline_command, rendered
from headgate.lake.tables.row_changes import Line, RowChanges, Values
from headgate.machine.control_characters import ON_ONE_LINE

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.declaration.model import Pipeline
    from headgate.history.backfill.report import BackfillReport, TableReport
    from headgate.insight.status.held_versions import HeldVersion


LONGEST = 200
"""The number of characters of a value that are shown."""
MOST_COLUMNS = 30
"""The number of columns of a row that are shown in one line."""
_PLAIN = re.compile(r"[-+]?[\d.,:eE+-]+(?: [\d.:+-]+)?")
"""Numbers and times: they need no code span."""
_BEFORE_A_BAR = re.compile(r"(?<!\\)(?:\\\\)*\\(?=\|)")
"""The end of an odd number of backslashes before a vertical bar. In a cell, a bar needs a backslash
of its own, and both would be read as an escaped backslash. So the code span ends there, and another
one follows after a comment, which is not shown."""


def table(found: RowChanges, after: str) -> str:
    """What readers see, and what is called ``after``."""
    has_rules = any(row.rules for row in found.rows)
    heads = [*(["Window"] if found.window else []), *found.by]
    heads += ["Row", "Column", "Readers see", after, *(["Breaks"] if has_rules else [])]
    lines = [[_cell(head) if head in found.by else head for head in heads], ["---"] * len(heads)]
    lines += [[*_cells(found, line, has_rules=has_rules)] for line in found.lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(found: RowChanges, line: Line, *, has_rules: bool) -> Iterator[str]:
    first = [" to ".join(map(value, line.window))] if found.window else []
    first += [value(each) for each in line.key.values()]
    first += [line.row.change]
    yield from first if line.is_first else [""] * len(first)
    yield "*all*" if line.column is None else _cell(line.column)
    yield "*the same*" if line.row.change == "seen" else _side(line, line.before)
    yield _side(line, line.after)
    if has_rules:
        yield ", ".join(map(_cell, line.row.rules)) if line.is_first else ""


def _side(line: Line, values: Values | None) -> str:
    if values is None:
        return "*no row*"
    if line.column is not None:
        return value(values[line.column])
    # A row has many columns. Most of those that are null say nothing.
    named = [f"{_cell(name)} {value(each)}" for name, each in values.items() if each is not None]
    more = [f"and {len(named) - MOST_COLUMNS:,} more"] if len(named) > MOST_COLUMNS else []
    return ", ".join([*named[:MOST_COLUMNS], *more]) or "*null*"


def value(text: str | None) -> str:
    """A value of a row, in a cell."""
    if text is None:
        return "*null*"
    return text if _PLAIN.fullmatch(text) else _cell(text)


def _cell(text: str) -> str:
    """As ``code``, in a cell: a vertical bar would end it. A long text is cut."""
    shown = text[:LONGEST]
    ends = [0, *(found.end() for found in _BEFORE_A_BAR.finditer(shown)), len(shown)]
    parts = (code(shown[begin:end]) for begin, end in pairwise(ends))
    more = f" … ({len(text):,} characters)" if len(text) > LONGEST else ""
    return "<!-- -->".join(part.replace("|", "\\|") for part in parts) + more


def code(text: str) -> str:
    """A text of any content, without an effect on what surrounds it. The fence of its code span is
    longer than any in the text, and one space at both ends is no part of it."""
    if not text:
        return "*empty*"
    shown = text.translate(ON_ONE_LINE)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown or shown != shown.strip(" ") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


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
