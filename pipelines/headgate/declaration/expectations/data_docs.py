"""Results of rules as a site of Great Expectations' Data Docs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from headgate.declaration.expectations.aggregates import moment
from headgate.declaration.expectations.exporting import SQL, as_parameter, query_of
from headgate.declaration.expectations.library import great_expectations
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Rule, Suite
from headgate.declaration.suites.versions import SILVER_SUM

_SITE = "headgate"
# Elements of the pages that load scripts and styles from six other hosts. ``_STYLE`` replaces them.
_LOADED = re.compile(
    r"<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<iframe\b.*?</iframe>", re.S
)
_FOOTER = re.compile(r"<footer\b.*?</footer>", re.S)
_STYLE = """<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 1rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th { text-align: left; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
.badge { background: #8883; border-radius: .3rem; padding: 0 .3rem; }
.fa-check-circle::before { content: "\\2713"; color: #2e7d32; }
.fa-times::before { content: "\\2717"; color: #b3261e; }
.fa-exclamation-triangle::before { content: "!"; color: #b3261e; font-weight: 600; }
.ge-index-page-site-name-title ~ *, .ge-index-page-tabs-container, .btn-group, button,
a[data-toggle=collapse], .sticky .card { display: none; }
</style></head>"""


@dataclass(frozen=True)
class ValidationRun:
    """The results of ``suite`` for a batch or a version of ``table``. ``name`` is the name of the
    run, of letters, digits and underscores; ``outcome`` describes for a person what followed."""

    table: str
    name: str
    at: datetime
    suite: Suite
    results: Sequence[RuleResult]
    outcome: str

    @property
    def asset(self) -> str:
        return self.table.replace("/", ".")

    @property
    def page(self) -> str:
        """The path at which Great Expectations writes the page of the run."""
        time = self.at.astimezone(UTC)
        return (
            f"validations/{self.suite.name}/{self.name}/{time:%Y%m%dT%H%M%S.%fZ}/{self.asset}.html"
        )


def build(folder: Path, runs: Sequence[ValidationRun], suites: Sequence[Suite]) -> Path:
    """Build the site, and return its first page. Neither the build nor a reader's browser uses a
    network. Existing files of the same names are replaced."""
    gx = great_expectations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context: Any = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}
        for name in context.get_site_names():
            context.delete_data_docs_site(name)
        context.add_data_docs_site(_SITE, _site(folder))
        for suite in suites:
            rules = [_configuration(rule, as_parameter).to_domain_obj() for rule in suite.rules]
            context.suites.add(gx.ExpectationSuite(suite.name, expectations=rules))
        for run in runs:
            _store(context, run)
        context.build_data_docs(site_names=[_SITE])
    for file in folder.rglob("*.html"):
        file.write_text(_without_network(file.read_text(encoding="utf-8")), encoding="utf-8")
    index = folder / "index.html"
    text = index.read_text(encoding="utf-8")
    listed = "".join(_list(folder, runs))
    index.write_text(text.replace("</body>", f"{listed}</body>"), encoding="utf-8")
    return index


def _site(folder: Path) -> dict[str, Any]:
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.resolve())}
    return {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": store,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }


def _store(context: Any, run: ValidationRun) -> None:
    from great_expectations.core import ExpectationSuiteValidationResult, RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    id_ = RunIdentifier(run_name=run.name, run_time=run.at)
    rules = {rule.id: rule for rule in run.suite.rules}
    met = sum(result.met for result in run.results)
    found = ExpectationSuiteValidationResult(
        success=met == len(run.results),
        results=[_result(rules[result.rule], result, run.at) for result in run.results],
        suite_name=run.suite.name,
        statistics={
            "evaluated_expectations": len(run.results),
            "successful_expectations": met,
            "unsuccessful_expectations": len(run.results) - met,
            "success_percent": 100 * met / len(run.results) if run.results else None,
        },
        meta={
            "run_id": id_,
            "active_batch_definition": {"data_asset_name": run.asset},
            "batch_kwargs": {"data_asset_name": run.asset},
        },
    )
    suite = ExpectationSuiteIdentifier(run.suite.name)
    key = ValidationResultIdentifier(suite, run_id=id_, batch_identifier=run.asset)
    context.validation_results_store.set(key, found)


def _configuration(rule: Rule, moment_of: Callable[[Any], Any]) -> Any:
    """The expectation of Great Expectations for a rule. If it cannot express the rule, its
    description has the rule in words. ``moment_of`` converts arguments that are times before the
    validation."""
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    type_, said = str(rule.expectation), None
    kwargs = {key: moment_of(value) for key, value in rule.arguments.items()}
    if rule.expectation is None:
        type_, kwargs = SQL, {"unexpected_rows_query": query_of(rule.condition)}
        said = f"{rule.sql or rule.condition} ({rule.id})"
    elif rule.expectation == SILVER_SUM:
        column, silver = kwargs["column"], kwargs["silver"]
        type_, kwargs = "expect_column_sum_to_be_between", {"column": column, "min_value": 0}
        said = f"the sum of {column} must equal the sum of {silver} in silver ({rule.id})"
    severity, meta = FailureSeverity(rule.severity), {"rule": rule.id}
    return ExpectationConfiguration(type_, kwargs, meta=meta, description=said, severity=severity)


def _result(rule: Rule, result: RuleResult, at: datetime) -> Any:
    from great_expectations.core import ExpectationValidationResult

    error = result.error
    exception = {"raised_exception": error is not None, "exception_message": error}
    return ExpectationValidationResult(
        success=result.met,
        expectation_config=_configuration(rule, partial(moment, now=at)),
        result=_observed(rule, result),
        exception_info={**exception, "exception_traceback": error},
    )


def _observed(rule: Rule, result: RuleResult) -> dict[str, Any]:
    if rule.expectation is None:
        return {"observed_value": result.unexpected}
    if result.unexpected is not None and result.rows is not None:
        share = 100 * result.unexpected / result.rows if result.rows else 0.0
        counts = {"element_count": result.rows, "unexpected_count": result.unexpected}
        return {**counts, "unexpected_percent": share, "partial_unexpected_list": []}
    if result.observed is None:
        return {}
    value: str | float = result.observed
    with suppress(ValueError):
        value = float(value)
    return {"observed_value": value}


def _without_network(page: str) -> str:
    kept = _FOOTER.sub("", _LOADED.sub("", page))
    return kept.replace("</head>", _STYLE, 1)


def _list(folder: Path, runs: Sequence[ValidationRun]) -> Iterator[str]:
    """A list of the runs, the newest first. The list of Great Expectations needs a script, which is
    removed."""
    yield "<table><tr><th>Table</th><th>Suite</th><th>Run</th><th>When</th><th>Outcome</th></tr>"
    for run in sorted(runs, key=lambda run: run.at, reverse=True):
        name = escape(run.name.replace("_", " "))
        if (folder / run.page).is_file():
            name = f'<a href="{escape(run.page)}">{name}</a>'
        suite = f'<a href="expectations/{escape(run.suite.name)}.html">{escape(run.suite.name)}</a>'
        yield (
            f"<tr><td>{escape(run.table)}</td><td>{suite}</td><td>{name}</td>"
            f"<td>{run.at:%F %T}Z</td><td>{escape(run.outcome)}</td></tr>"
        )
    yield "</table>"
