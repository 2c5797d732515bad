"""The page of a pipeline's rules: what producers write is text, and no network is needed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Rule, Suite
from headgate.flow.gates.documents import Hold, Release
from headgate.flow.gates.validations import Validation
from headgate.insight.quality.findings import (
    DecidedBatch,
    Findings,
    GoldFindings,
    RejectedRow,
    SilverFindings,
    masked,
)
from headgate.insight.quality.page import page
from headgate.lake.tables.row_changes import RowChange, RowChanges

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>&\"'"
SUITE = Suite(
    "clean",
    (Rule("low", None, {}, "coalesce((a > 0 and b < 'ä'), true)"), Rule("b", None, {}, "true")),
)
VERSIONS = Suite(
    "versions",
    (
        Rule("max", "expect_column_max_to_be_between", {"column": "name"}, action="hold"),
        Rule("b", None, {}, "true", action="hold"),
    ),
)


def found(value: bytes = b"Anna 42", id_: str = "e-7") -> Findings:
    batches = tuple(DecidedBatch(n, NOON, 100, n, {"low": n}) for n in range(1, 5))
    row = RejectedRow(id_, NOON, ("low",), value)
    silver = SilverFindings("silver/clean", SUITE, batches, {"low": (row,)})
    given = Release(2, f"anna{HOSTILE}", HOSTILE, NOON)
    broken = RuleResult("max", "critical", "hold", met=False, observed=f"Otto{HOSTILE}")
    met = RuleResult("max", "critical", "hold", met=True, observed="Anna")
    rows = RuleResult("b", "critical", "hold", met=True, unexpected=0)
    validations = (
        Validation("per_minute", 1, 4, NOON, VERSIONS, (met, rows)),
        Validation("per_minute", 2, 5, NOON, VERSIONS, (broken,), given),
        Validation("per_minute", 3, 6, NOON, VERSIONS, (broken,), log="x", rows=rows_of(id_)),
    )
    hold = Hold("per_minute", 2, 5, NOON, NOON, (broken,))
    gold = GoldFindings("gold/per_minute", VERSIONS, validations, (hold,))
    return Findings("shop", NOON, (silver,), (gold,))


def rows_of(key: str) -> RowChanges:
    about = {"window_start": "2026-03-01 12:00:00", "site": key}
    rows = (RowChange({**about, "total": "3"}, {**about, "total": "-77"}, ("sane",)),)
    return RowChanges(("window_start",), ("site",), ("total",), rows, total=25)


def test_the_rows_that_broke_rules_are_shown() -> None:
    hidden, shown = (page(found(), show_values=each) for each in (False, True))
    for text, key, old, new in ((hidden, "x-9", "9", "-99"), (shown, "e-7", "3", "-77")):
        assert "the first 1 of 25 rows" in text
        values = ("2026-03-01 12:00:00", *(f"<code>{key}</code>", "changed", "total"))
        sides = (f"<code>{old}</code>", f"<code>{new}</code>", "sane")
        cells = "".join(f"<td>{each}</td>" for each in (*values, *sides))
        assert f"<tr>{cells}</tr>" in text


def test_it_says_how_often_each_rule_was_met() -> None:
    text = page(found(), show_values=False)
    assert "4 batches, 400 rows, 10 rejected" in text
    assert "97.50%" in text
    assert "met by 96.0% to 99.0%, last 96.0%" in text
    assert "gold/per_minute is held at batch 2 since 2026-03-01 12:00:00Z: with batches" in text
    assert "newest 3 validations of versions" in text
    assert "33.33%" in text
    assert "<td>0 rows break it</td>" in text
    assert "<td>released</td>" in text
    assert "<td>held (rebuild)</td>" in text


def test_values_are_masked_unless_they_are_asked_for() -> None:
    hidden, shown = (page(found(), show_values=each) for each in (False, True))
    assert "Anna 42" not in hidden
    assert "xxxx 99" in hidden
    assert "e-7" not in hidden
    assert "Anna 42" in shown
    assert "Otto" not in hidden
    assert "it is xxxx" in hidden
    assert "it is Otto" in shown
    assert masked("Ab-9, ü") == "xx-9, x"


def test_what_producers_and_people_write_is_text() -> None:
    text = page(found(HOSTILE.encode(), HOSTILE), show_values=True)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 4


def test_it_needs_nothing_else() -> None:
    text = page(found(), show_values=True)
    assert not re.search(r"https?:|src=|href=|@import|url\(", text)


def test_its_plots_are_drawn() -> None:
    text = page(found(), show_values=False)
    plots = re.findall(r"<svg.*?</svg>", text)
    assert len(plots) == 3
    for plot in plots:
        quoted = plot.replace("role=img", "role='img'")
        quoted = re.sub(r"(width|height)=(\d+)", r"\1='\2'", quoted)
        ElementTree.fromstring(quoted)


def test_a_long_value_is_cut_and_a_strange_one_shown() -> None:
    text = page(found(b"x" * 10_000_000), show_values=True)
    assert len(text) < 20_000
    assert "\ufffd" in page(found(b"\xff\xfe"), show_values=True)


def test_a_pipeline_without_rules() -> None:
    assert "No table has expectations." in page(Findings("p", NOON, (), ()), show_values=False)
