"""The page of a pipeline's rules: what producers write is text, and no network is needed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

from headgate.declaration.suites.model import Rule, Suite
from headgate.expectations.result import RuleResult
from headgate.gates.documents import Hold
from headgate.quality.findings import (
    DecidedBatch,
    Findings,
    GoldFindings,
    RejectedRow,
    SilverFindings,
    Validation,
)
from headgate.quality.page import masked, page

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>&\"'"
SUITE = Suite(
    "clean",
    (Rule("low", None, {}, "coalesce((a > 0 and b < 'ä'), true)"), Rule("b", None, {}, "true")),
)


def found(value: bytes = b"Anna 42", id_: str = "e-7") -> Findings:
    batches = tuple(DecidedBatch(100, n, {"low": n}) for n in range(1, 5))
    row = RejectedRow(id_, NOON, ("low",), value)
    silver = SilverFindings("silver/clean", SUITE, batches, {"low": (row,)})
    given = {"by": f"anna{HOSTILE}", "reason": HOSTILE, "at": NOON.isoformat(), "upto": 2}
    validations = (Validation(1, NOON, (), None), Validation(2, NOON, ("low",), given))
    result = RuleResult("low", "critical", "hold", met=False, observed=HOSTILE)
    hold = Hold("per_minute", 2, 5, NOON, NOON, (result,))
    gold = GoldFindings("gold/per_minute", SUITE, validations, hold)
    return Findings("shop", NOON, (silver,), (gold,))


def test_it_says_how_often_each_rule_was_met() -> None:
    text = page(found(), show_values=False)
    assert "4 batches, 400 rows, 10 rejected" in text
    assert "97.50%" in text
    assert "met by 96.0% to 99.0%, last 96.0%" in text
    assert "Held at batch 2 since 2026-03-01 12:00:00Z: the version up to batch 5" in text
    assert "2 visible versions were validated" in text
    assert "50.00%" in text


def test_values_are_masked_unless_they_are_asked_for() -> None:
    hidden, shown = (page(found(), show_values=each) for each in (False, True))
    assert "Anna 42" not in hidden
    assert "xxxx 99" in hidden
    assert "e-7" not in hidden
    assert "Anna 42" in shown
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
    assert len(plots) == 4
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
