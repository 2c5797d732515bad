"""The findings about a pipeline, as runs of Great Expectations' Data Docs."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.declaration.expectations.data_docs import ValidationRun
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.quantities import plural
from headgate.declaration.suites.model import Rule, Suite
from headgate.flow.gates.validations import Validation
from headgate.insight.quality.findings import DecidedBatch, Findings, without_values

RUNS = 50
"""The most runs of a table, the newest. Each run has a page, which takes a tenth of a second."""


def runs(found: Findings, *, show_values: bool) -> Iterator[ValidationRun]:
    """The newest runs of all tables. Observed values of rows are masked unless ``show_values``."""
    for silver in found.silver:
        for batch in silver.batches[-RUNS:]:
            yield _batch(silver.table, silver.suite, batch)
    for gold in found.gold:
        for validation in gold.validations[-RUNS:]:
            yield _validation(gold.table, validation, show_values)


def _batch(table: str, suite: Suite, batch: DecidedBatch) -> ValidationRun:
    """The counts of a batch of silver. A rule that is newer than the batch counts as met."""
    results = [_counted(rule, batch) for rule in suite.rules]
    outcome = f"{batch.rejected:,} of {plural(batch.rows, 'row')} rejected"
    return ValidationRun(table, f"batch_{batch.n}", batch.at, suite, results, outcome)


def _counted(rule: Rule, batch: DecidedBatch) -> RuleResult:
    broken = batch.broken.get(rule.id, 0)
    met = broken == 0
    return RuleResult(rule.id, rule.severity, rule.action, met, unexpected=broken, rows=batch.rows)


def _validation(table: str, validation: Validation, show_values: bool) -> ValidationRun:
    rules = {rule.id: rule for rule in validation.suite.rules}
    results = [
        result if show_values else without_values(result, rules[result.rule])
        for result in validation.results
    ]
    rebuild = "_of_the_rebuild" if validation.log else ""
    name = f"batch_{validation.n}_version_{validation.version}{rebuild}"
    return ValidationRun(table, name, validation.at, validation.suite, results, validation.outcome)
