"""Findings as one HTML page that needs no other file, no script and no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from html import escape

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.quantities import plural
from headgate.declaration.suites.model import Rule, Suite
from headgate.declaration.suites.plan import asked
from headgate.flow.gates.validations import Validation
from headgate.insight.quality.findings import (
    DecidedBatch,
    Findings,
    GoldFindings,
    RejectedRow,
    SilverFindings,
    masked,
    without_values,
)
from headgate.lake.tables.row_changes import RowChanges, Values

_WIDTH, _HEIGHT = 240, 36  # of a plot, in pixels
_VERSIONS = 5  # the newest versions whose rows are shown
_MOST = 500  # bytes of a value that are shown
STYLE = """
:root { color-scheme: light dark; --good: #2e7d32; --bad: #b3261e; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere;
  white-space: pre-wrap; margin: 0; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
svg { display: block; } polyline { fill: none; stroke: currentColor; stroke-width: 1.5; }
.scroll { overflow-x: auto; }
"""


def page(found: Findings, *, show_values: bool) -> str:
    """The page. Values of rejected rows are masked unless ``show_values``."""
    body = [
        f"<h1>Quality of {escape(found.pipeline)}</h1>",
        f"<p>As of {_time(found.at)}. Rejected values are {_shown(show_values)}.</p>",
    ]
    for silver in found.silver:
        body += _silver(silver, show_values)
    for gold in found.gold:
        body += _gold(gold, show_values)
    if not found.silver and not found.gold:
        body.append("<p>No table has expectations.</p>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Quality of {escape(found.pipeline)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _shown(show_values: bool) -> str:
    return "shown" if show_values else "masked"


def _silver(found: SilverFindings, show_values: bool) -> Iterator[str]:
    rows, rejected = (
        sum(getattr(batch, name) for batch in found.batches) for name in ("rows", "rejected")
    )
    yield f"<h2>{escape(found.table)}</h2>{_suite(found.suite)}"
    count = f"{len(found.batches):,} batch{'es' * (len(found.batches) != 1)}"
    yield f"<p>{count}, {plural(rows, 'row')}, {rejected:,} rejected.</p>"
    yield _table_head("Rule", "Asks", "Action", "Broke it:", "Met by:", "Over time")
    for rule in found.suite.rules:
        broken = sum(batch.broken.get(rule.id, 0) for batch in found.batches)
        met = "–" if not rows else f"{(rows - broken) / rows:.2%}"
        plot = _plot([_met(rule, batch) for batch in found.batches if batch.rows])
        yield (
            f"<tr>{_rule(rule)}<td class=number>{broken:,}</td>"
            f"<td class='number {_tone(broken == 0)}'>{met}</td><td>{plot}</td></tr>"
        )
    yield "</table></div>"
    for rule in found.suite.rules:
        if samples := found.samples.get(rule.id, ()):
            yield f"<h3>Rows that broke {escape(rule.id)}</h3>"
            yield from _samples(samples, show_values)


def _met(rule: Rule, batch: DecidedBatch) -> float:
    return 1 - batch.broken.get(rule.id, 0) / batch.rows


def _samples(samples: Sequence[RejectedRow], show_values: bool) -> Iterator[str]:
    yield _table_head("Event", "Time", "Broken rules", "Value")
    for row in samples:
        id_ = "–" if row.event_id is None else row.event_id
        time = "–" if row.event_time is None else _time(row.event_time)
        rules = escape(", ".join(row.rules))
        yield (
            f"<tr><td><code>{escape(id_ if show_values else masked(id_))}</code></td>"
            f"<td>{time}</td><td>{rules}</td><td><pre>{_value(row.value, show_values)}</pre></td>"
            "</tr>"
        )
    yield "</table></div>"


def _value(value: bytes | None, show_values: bool) -> str:
    text = "–" if value is None else value[:_MOST].decode("utf-8", "replace")
    more = "…" if value is not None and len(value) > _MOST else ""
    return escape(text if show_values else masked(text)) + more


def _gold(found: GoldFindings, show_values: bool) -> Iterator[str]:
    say = partial(_said, {rule.id: rule for rule in found.suite.rules}, show_values)
    yield f"<h2>{escape(found.table)}</h2>{_suite(found.suite)}"
    for hold in found.held:
        yield (
            f"<p class=bad>{escape(hold.title)} is held at batch {hold.n:,} since "
            f"{_time(hold.since)}: with {hold.what} it breaks rules. "
            f"{'; '.join(map(say, hold.failed))}</p>"
        )
    yield f"<p>The newest {plural(len(found.validations), 'validation')} of versions.</p>"
    yield _table_head("Rule", "Asks", "Action", "Broke it:", "Met by:", "Over time", "Last")
    for rule in found.suite.rules:
        results = [r for each in found.validations for r in each.results if r.rule == rule.id]
        met = [float(result.met) for result in results]
        share = "–" if not met else f"{sum(met) / len(met):.2%}"
        broken = len(met) - int(sum(met))
        yield (
            f"<tr>{_rule(rule)}<td class=number>{broken:,}</td>"
            f"<td class='number {_tone(broken == 0)}'>{share}</td><td>{_plot(met)}</td>"
            f"<td>{say(results[-1], named=False) if results else '–'}</td></tr>"
        )
    yield "</table></div>"
    stopped = [v for v in found.validations if v.outcome in ("held", "released")]
    yield from _stopped(stopped, say)
    if shown := [each for each in stopped if each.rows.rows][-_VERSIONS:]:
        yield "<h3>Rows that broke rules</h3>"
        for each in shown:
            yield f"<p>Batch {each.n:,}, {_time(each.at)}: {each.rows.count}.</p>"
            yield from _changes(each.rows, show_values)


def _said(
    rules: Mapping[str, Rule], show_values: bool, result: RuleResult, *, named: bool = True
) -> str:
    if not show_values:
        result = without_values(result, rules.get(result.rule))
    name = f"{result.rule} ({result.severity}): " if named else ""
    return escape(f"{name}{result.seen}")


def _stopped(found: Sequence[Validation], say: Callable[[RuleResult], str]) -> Iterator[str]:
    if not found:
        return
    yield "<h3>Held and released versions</h3>"
    yield _table_head("Batch:", "When", "Rules that hold", "Outcome", "By", "Why")
    for each in found:
        rules = "; ".join(say(result) for result in each.results if result.holds)
        by, why = (each.released.by, each.released.reason) if each.released else ("–", "–")
        rebuild = " (rebuild)" if each.log else ""
        yield (
            f"<tr><td class=number>{each.n:,}</td><td>{_time(each.at)}</td>"
            f"<td>{rules}</td><td>{each.outcome}{rebuild}</td>"
            f"<td>{escape(by)}</td><td>{escape(why)}</td></tr>"
        )
    yield "</table></div>"


def _changes(found: RowChanges, show_values: bool) -> Iterator[str]:
    """What readers saw, and what the version had."""

    def said(value: str | None) -> str:
        text = "null" if value is None else value
        return f"<code>{escape(text if show_values else masked(text))}</code>"

    def side(values: Values | None) -> str:
        if values is None:
            return "–"
        named = values.items()
        if len(values) == 1:
            return said(*values.values())
        return ", ".join(f"{escape(name)} {said(v)}" for name, v in named if v is not None)

    heads = (*found.window, *found.by, "Row", "Column", "Readers saw", "Version", "Broken rules")
    yield _table_head(*heads)
    for line in found.lines:
        window = (escape(time or "null") for time in line.window)
        cells = [*window, *map(said, line.key.values()), line.row.change]
        if not line.is_first:
            cells = [""] * len(cells)
        cells += [escape(line.column or "all"), side(line.before), side(line.after)]
        cells += [escape(", ".join(line.row.rules)) if line.is_first else ""]
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</table></div>"


def _suite(suite: Suite) -> str:
    return f"<p>Suite <code>{escape(suite.name)}</code>, digest {suite.digest[:16]}.</p>"


def _table_head(*headers: str) -> str:
    cells = (
        f"<th{' class=number' if header.endswith(':') else ''}>{escape(header.rstrip(':'))}</th>"
        for header in headers
    )
    return f"<div class=scroll><table><tr>{''.join(cells)}</tr>"


def _rule(rule: Rule) -> str:
    asks = rule.condition or asked(rule.expectation, rule.arguments)
    how = f"{rule.action}, {rule.severity}"
    return f"<td>{escape(rule.id)}</td><td><code>{escape(asks)}</code></td><td>{escape(how)}</td>"


def _plot(shares: Sequence[float]) -> str:
    """A line of shares between 0 and 1, the oldest on the left. Its text has the least, the
    greatest and the last one."""
    if len(shares) < 2:
        return ""
    step = _WIDTH / (len(shares) - 1)
    points = " ".join(
        f"{index * step:.1f},{1 + (1 - share) * (_HEIGHT - 2):.1f}"
        for index, share in enumerate(shares)
    )
    label = f"met by {min(shares):.1%} to {max(shares):.1%}, last {shares[-1]:.1%}"
    return (
        f"<svg width={_WIDTH} height={_HEIGHT} role=img aria-label='{label}'>"
        f"<title>{label}</title><polyline points='{points}'/></svg>"
    )


def _tone(good: bool) -> str:
    return "good" if good else "bad"


def _time(time: datetime) -> str:
    return f"{time:%F %T}Z"
