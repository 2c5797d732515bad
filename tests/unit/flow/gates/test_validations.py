"""The documents of validations: content, order, number, and what a failed write costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Rule, Suite
from headgate.flow.gates import validations as module
from headgate.flow.gates.documents import Release
from headgate.flow.gates.events import GateEvents
from headgate.flow.gates.validations import (
    Validation,
    ValidationLog,
    named_validations,
    validations,
)
from headgate.lake.storage.documents import Document, read_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUITE = Suite("s", (Rule("a", "e", {"column": "c"}, action="hold"), Rule("b", None, {}, "true")))
MET = RuleResult("a", "critical", "hold", met=True, observed="3")
BROKEN = replace(MET, met=False, unexpected=2, rows=9)
WARNED = replace(BROKEN, rule="b", action="warn")


def validation(number: int, *results: RuleResult, log: str = "") -> Validation:
    at = NOON + timedelta(seconds=number)
    return Validation("t", number, number + 7, at, SUITE, results or (MET,), log=log)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(Storage(str(tmp_path)))


def test_it_keeps_everything_and_in_order(layout: Layout) -> None:
    log = ValidationLog(layout, "t")
    released = replace(validation(10, BROKEN), released=Release(10, "anna", "why", NOON))
    written = [validation(9), released, validation(11, BROKEN, WARNED), validation(12, WARNED)]
    written[3] = replace(written[3], operation=3, generation=2)
    for each in written:
        log.record(each)
    log.record(replace(written[0], log="rebuilt"))
    found = validations(layout, "t")
    assert found[:-1] == tuple(written)
    assert [each.outcome for each in found] == ["met", "released", "held", "broken", "met"]
    assert [result.rule for result in found[2].broken] == ["a", "b"]
    assert validations(layout, "other") == ()


def test_the_newest_are_kept(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 5)
    log = ValidationLog(layout, "t")
    for number in range(10):
        log.record(validation(number))
    assert [each.n for each in validations(layout, "t")] == [5, 6, 7, 8, 9]
    assert len(list(layout.storage.list("_headgate/validations/t"))) == 5


def test_they_keep_their_order_under_a_clock_that_was_set_back(layout: Layout) -> None:
    """Events are sent from the last name on, so no later document may sort before it."""
    numbers = (7200, 7201, 5, 6, 7200)
    for number in numbers:
        ValidationLog(layout, "t").record(validation(number, log="" if number % 2 else "rebuilt"))
    names, found = zip(*named_validations(layout, "t"), strict=True)
    assert tuple(each.n for each in found) == numbers
    assert sorted(set(names)) == [*names]


def test_a_damaged_document_is_left_out(layout: Layout) -> None:
    log = ValidationLog(layout, "t")
    for number in range(3):
        log.record(validation(number))
    (path,) = [
        f.path for f in layout.storage.list("_headgate/validations/t") if "-000000008" in f.path
    ]
    layout.storage.write(path, b"{}")
    layout.storage.write("_headgate/validations/t/00-1.json.1a.tmp", b"half a docu")
    assert [each.n for each in validations(layout, "t")] == [0, 2]


def test_a_document_that_cannot_be_written_costs_nothing_else(layout: Layout) -> None:
    layout.storage.write("_headgate/validations", b"a file in the way of the folder")
    ValidationLog(layout, "t").record(validation(1))


@pytest.mark.parametrize("log", ["", "rebuilt"])
def test_a_long_hold_keeps_its_beginning_and_its_event(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    """A held table is validated again and again. Its one event must not become another."""
    monkeypatch.setattr(module, "KEPT", 5)
    kept = ValidationLog(layout, "t")
    kept.record(validation(1, log=log))
    seen = set()
    for number in range(2, 30):
        kept.record(validation(number, BROKEN, log=log))
        seen |= {(each.event, each.id) for each in GateEvents(layout, "t").after("")}
    assert [each.n for each in validations(layout, "t")] == [1, 2, 29]
    assert [event for event, _ in seen] == ["held"]
    kept.record(validation(30, log=log))
    assert [each.event for each in GateEvents(layout, "t").after("")] == ["held", "passed"]


def test_each_document_is_read_once_for_events(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver looks for new events about once a second."""
    log, found = ValidationLog(layout, "t"), GateEvents(layout, "t")
    for number in (1, 2, 3):
        log.record(validation(number, BROKEN))
    reads = list[str]()

    def counted(storage: Storage, path: str) -> Document | None:
        reads.append(path)
        return read_document(storage, path)

    monkeypatch.setattr("headgate.lake.storage.documents.read_document", counted)
    (held,) = found.after("")
    assert held.event == "held"
    reads.clear()
    assert found.after("") == (held,)
    assert found.after(held.name) == ()
    assert reads == []
    log.record(validation(4))
    reads.clear()
    (passed,) = found.after(held.name)
    assert (passed.event, len(reads)) == ("passed", 1)
    assert GateEvents(layout, "t").after("") == found.after("") == (held, passed)
