"""Collects what the rules of a pipeline have decided, from commits and rejected rows. Values of
rows are masked, unless the reader asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.kinds import GOLD, REJECTED, SILVER
from headgate.declaration.model import Pipeline
from headgate.declaration.suites.model import RULE_COUNT, Rule, Suite
from headgate.declaration.suites.versions import OBSERVE_VALUES
from headgate.flow.gates.documents import Hold, holds
from headgate.flow.gates.validations import Validation, validations
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage
from headgate.lake.tables.state import State, time_of
from headgate.lake.tables.table import Table


def masked(text: str) -> str:
    """The text with its letters and digits replaced, so that its form can still be seen."""
    return "".join("x" if c.isalpha() else "9" if c.isdigit() else c for c in text)


def without_values(result: RuleResult, rule: Rule | None) -> RuleResult:
    """The result without what may be a value of a row: some rules observe one, and an error may
    quote one. ``rule`` is None if it is not known any more."""
    if result.error is not None:
        result = replace(result, error="it could not be validated")
    if result.observed is not None and (rule is None or rule.expectation in OBSERVE_VALUES):
        result = replace(result, observed=masked(result.observed))
    return result


BATCHES = 500
"""The most commits of a table that are read, the newest."""
SAMPLES = 5
"""Rejected rows that are shown for each rule."""
_SCANNED = 10_000  # rejected rows among which samples are looked for


@dataclass(frozen=True)
class DecidedBatch:
    """The commit of a silver table at batch id ``n``: ``rows`` are those that passed its ``where``,
    ``broken`` how many of them broke each rule."""

    n: int
    at: datetime
    rows: int
    rejected: int
    broken: Mapping[str, int]


@dataclass(frozen=True)
class RejectedRow:
    event_id: str | None
    event_time: datetime | None
    rules: tuple[str, ...]
    value: bytes | None


@dataclass(frozen=True)
class SilverFindings:
    """``batches`` has the oldest first, ``samples`` the rejected rows to show by rule."""

    table: str
    suite: Suite
    batches: tuple[DecidedBatch, ...]
    samples: Mapping[str, tuple[RejectedRow, ...]]


@dataclass(frozen=True)
class GoldFindings:
    """``validations`` has the oldest first, ``held`` has the current holds of the table and of its
    rebuild."""

    table: str
    suite: Suite
    validations: tuple[Validation, ...]
    held: Sequence[Hold]


@dataclass(frozen=True)
class Findings:
    pipeline: str
    at: datetime
    silver: tuple[SilverFindings, ...]
    gold: tuple[GoldFindings, ...]


def findings(layout: Layout, pipeline: Pipeline, now: datetime) -> Findings:
    """Read the newest commits of all tables with suites. Raises HeadgateError if a table or a
    document is damaged."""
    held = holds(layout, pipeline)
    silver = (
        _silver(layout, pipeline, name, table.suite)
        for name, table in pipeline.silver.items()
        if table.suite is not None
    )
    gold = (
        _gold(layout, name, table.suite, [hold for hold in held if hold.table == name])
        for name, table in pipeline.gold.items()
        if table.suite is not None
    )
    return Findings(pipeline.name, now, tuple(silver), tuple(gold))


def _silver(layout: Layout, pipeline: Pipeline, name: str, suite: Suite) -> SilverFindings:
    batches = tuple(map(_decided, _states(layout, pipeline, SILVER.path(name))))
    samples = _samples(layout, pipeline, name, suite)
    return SilverFindings(SILVER.path(name), suite, batches[::-1], samples)


def _gold(layout: Layout, name: str, suite: Suite, held: Sequence[Hold]) -> GoldFindings:
    return GoldFindings(GOLD.path(name), suite, validations(layout, name), held)


def _states(layout: Layout, pipeline: Pipeline, path: str) -> Iterator[State]:
    """The states of a table's newest data commits, the newest first."""
    table = Table(layout.storage, path, pipeline=pipeline.name)
    if table.exists:
        data = (commit.state for commit in lineage(table) if commit.state.kind == "data")
        yield from islice(data, BATCHES)


def _decided(state: State) -> DecidedBatch:
    counts, rejected = state.batch, state.batch.get("rejected", 0)
    broken = {
        key.removeprefix(RULE_COUNT): count
        for key, count in counts.items()
        if key.startswith(RULE_COUNT)
    }
    return DecidedBatch(
        state.n, time_of(state.at), counts.get("silver", 0) + rejected, rejected, broken
    )


def _samples(
    layout: Layout, pipeline: Pipeline, name: str, suite: Suite
) -> dict[str, tuple[RejectedRow, ...]]:
    table = Table(layout.storage, REJECTED.path(name), pipeline=pipeline.name)
    if not table.exists:
        return {}
    columns = ["event_id", "event_time", "rules", "value"]
    found = table.handle.to_pyarrow_dataset().head(_SCANNED, columns=columns).to_pylist()
    rows = [
        RejectedRow(r["event_id"], r["event_time"], tuple(e["id"] for e in r["rules"]), r["value"])
        for r in found
    ]
    return {rule.id: _of_rule(rule.id, rows) for rule in suite.rules}


def _of_rule(rule: str, rows: Sequence[RejectedRow]) -> tuple[RejectedRow, ...]:
    return tuple(islice((row for row in rows if rule in row.rules), SAMPLES))
