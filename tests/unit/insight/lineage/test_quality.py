"""The results of rules in lineage: of the version that readers see, and without row values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.graph import graph_of
from headgate.declaration.suites.model import Rule, Suite
from headgate.flow.gates.documents import Release
from headgate.flow.gates.validations import Validation, ValidationLog
from headgate.insight.lineage.datasets import RuleOutcome, rule_outcomes
from tests.support.charted import Charted

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
DISTINCT = "expect_column_distinct_values_to_be_in_set"
SUITE = Suite("s", (Rule("known", DISTINCT, {"column": "channel"}), Rule("few", "e", {})))
KNOWN = RuleResult("known", "critical", "warn", met=False, observed="['kim@example.org']")
FEW = RuleResult("few", "critical", "hold", met=True, observed="3")


def validation(n: int, *results: RuleResult, log: str = "") -> Validation:
    return Validation("sales", n, n, NOON + timedelta(seconds=n), SUITE, results, log=log)


def said(folder: Path, *found: Validation) -> list[RuleOutcome]:
    shop = Charted(folder)
    log = ValidationLog(shop.layout, "sales")
    for each in found:
        log.record(each)
    return list(rule_outcomes(shop.pipeline, shop.layout, graph_of(shop.pipeline)["gold/sales"]))


def test_a_value_of_a_row_is_masked(tmp_path: Path) -> None:
    assert said(tmp_path, validation(1, KNOWN, FEW)) == [
        RuleOutcome("known", False, False, "it is ['xxx@xxxxxxx.xxx']"),
        RuleOutcome("few", True, True, "it is 3"),
    ]


def test_an_error_is_not_quoted(tmp_path: Path) -> None:
    (outcome,) = said(tmp_path, validation(1, replace(KNOWN, error="no number: kim")))
    assert outcome.description == "it could not be validated"


def test_it_is_of_the_newest_version_that_can_be_seen(tmp_path: Path) -> None:
    held, rebuilt = replace(FEW, met=False, observed="9"), replace(FEW, observed="7")
    others = validation(2, held), validation(3, rebuilt, log="rebuilt")
    assert said(tmp_path / "a", *others) == []
    (newest,) = said(tmp_path / "b", validation(1, FEW), *others)
    assert newest.description == "it is 3"
    released = replace(validation(4, held), released=Release(4, "anna", "why", NOON))
    (newest,) = said(tmp_path / "c", *others, released)
    assert newest.description == "it is 9"
