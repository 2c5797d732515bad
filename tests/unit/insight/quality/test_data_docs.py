"""Data Docs of Great Expectations, from results that we keep."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.declaration.expectations.data_docs import build
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.arguments import ArgumentKind, RuleArgument
from headgate.declaration.suites.model import Rule, Suite
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from headgate.declaration.suites.versions import TABLE_EXPECTATIONS
from headgate.flow.gates.documents import Release
from headgate.flow.gates.validations import Validation
from headgate.insight.quality.data_docs import runs
from headgate.insight.quality.findings import DecidedBatch, Findings, GoldFindings, SilverFindings
from tests.support import browser

pytestmark = pytest.mark.slow  # great_expectations takes seconds to load

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIVEN: dict[ArgumentKind, object] = {
    ArgumentKind.COLUMN: "amount",
    ArgumentKind.COLUMNS: ["amount", "name"],
    ArgumentKind.VALUE: 3,
    ArgumentKind.VALUES: ["x", "y"],
    ArgumentKind.PAIRS: [["x", "y"]],
    ArgumentKind.LENGTH: 2,
    ArgumentKind.REGEX: "^a",
    ArgumentKind.REGEXES: ["^a", "b"],
    ArgumentKind.FLAG: True,
    ArgumentKind.NUMBER: 1,
    ArgumentKind.SHARE: 0.9,
    ArgumentKind.MOMENT: "now - 10 minutes",
    ArgumentKind.SILVER: "price * 2",
}


def rule(name: str, arguments: tuple[RuleArgument, ...]) -> Rule:
    given = {a.name: a.choices[0] if a.choices else GIVEN[a.kind] for a in arguments}
    return Rule(name, name, given, action="hold")


def result(of: Rule) -> RuleResult:
    """A result like a validation's: the number of rows that broke a rule of rows, else what was
    observed."""
    if of.expectation is None or of.expectation in ROW_EXPECTATIONS or "mostly" in of.arguments:
        return RuleResult(of.id, "critical", of.action, met=False, unexpected=7, rows=20)
    observed = "['Anna', 'Otto']" if "distinct" in of.id or "common" in of.id else "42"
    return RuleResult(of.id, "critical", of.action, met=True, observed=observed)


SQL = Rule("sane", None, {}, "coalesce((a < 3), true)", action="hold", sql="a < 3")
OF_MEAN = "expect_column_mean_to_be_between"
MEAN = rule(OF_MEAN, TABLE_EXPECTATIONS[OF_MEAN])
ALL = Suite("all", (SQL, *(rule(*each) for each in TABLE_EXPECTATIONS.items())))
FAILED = RuleResult(MEAN.id, "critical", "hold", met=False, error="no number: 'Anna'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a site. Returns its first page."""
    validations = (
        Validation("sales", 1, 4, NOON, ALL, tuple(map(result, ALL.rules))),
        Validation(
            "sales", 2, 5, NOON, Suite("all", (MEAN,)), (FAILED,), Release(2, "a", "b", NOON)
        ),
    )
    rows = Suite("rows", (SQL, *(rule(n, r.arguments) for n, r in ROW_EXPECTATIONS.items())))
    batch = DecidedBatch(3, NOON, 100, 4, {"sane": 4})
    silver = SilverFindings("silver/clean", rows, (batch,), {})
    found = Findings("p", NOON, (silver,), (GoldFindings("gold/sales", ALL, validations, ()),))
    folder = tmp_path_factory.mktemp("site")
    return build(folder, tuple(runs(found, show_values=False)), (rows, ALL))


def pages(site: Path) -> dict[str, str]:
    return {f.parts[-3]: f.read_text() for f in site.parent.glob("validations/*/*/*/*.html")}


def test_each_run_has_a_page_that_the_first_one_lists(site: Path) -> None:
    links = re.findall(r'href="(validations/[^"]+|expectations/[^"]+)"', site.read_text())
    assert len(set(links)) == 3 + 2
    for link in links:
        assert (site.parent / link).is_file(), link
    assert len(pages(site)) == 3


def test_each_expectation_is_shown(site: Path) -> None:
    """If one could not be rendered, its run would have no page, only a name on the first page."""
    page = pages(site)["batch_1_version_4"]
    marks = re.findall(r'class="fas fa-(?:check-circle|times) ', page)
    assert len(marks) == len(ALL.rules) + 1, "one more is of the whole run"
    assert "a < 3 (sane)" in page
    assert "the sum of amount must equal the sum of price * 2 in silver" in page
    assert "35% unexpected" in page
    assert "mean must be greater than" in page


def test_values_are_masked(site: Path) -> None:
    text = "".join(pages(site).values())
    assert "Anna" not in text
    assert "it could not be validated" in text


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in site.parent.rglob("*.html"):
        text = file.read_text()
        assert "<script" not in text
        assert not re.search(r"(src|<link[^>]*href)=.?https?:", text), file


@pytest.mark.skipif(not browser.is_there, reason="there is no browser")
def test_a_browser_shows_it(site: Path, tmp_path: Path) -> None:
    with browser.opened(site.as_uri(), tmp_path) as page:
        page.run(
            "new Promise(done => document.readyState === 'complete' ? done()"
            " : addEventListener('load', () => done()))"
        )
        text = page.run("document.body.innerText")
        assert "released" in text
        assert "4 of 100 rows rejected" in text
        shown = (
            "[...document.querySelectorAll('a')].filter(a => a.offsetParent).map(a => a.innerText)"
        )
        assert {"batch 1 version 4", "batch 3", "rows", "all"} <= set(page.run(shown))
