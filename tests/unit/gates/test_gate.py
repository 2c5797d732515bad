"""What a gate decides: which versions it validates, what it holds, and what a release lets pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.suites.model import Rule, Suite
from headgate.expectations.result import RuleResult
from headgate.gates import documents
from headgate.gates.documents import Release
from headgate.gates.gate import TableGate
from headgate.gates.validations import validations
from headgate.storage.documents import encoded
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.data_file import DataFile
from headgate.tables.errors import HeldError
from headgate.tables.payloads.gold import GoldPayload
from headgate.tables.table import Table
from tests.unit.tables.conftest import SCHEMA, TIME, file

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUITE = Suite("s", (Rule("a", "e", {"column": "c"}, action="hold"),))
MET = RuleResult("a", "critical", "hold", met=True)
BROKEN, WARNED = replace(MET, met=False), replace(MET, met=False, action="warn")
OPEN, FINAL = file("open"), file("final", final=True)
HOUR = timedelta(hours=1)


class Gated:
    """A gold table at batch 1. Its validations give ``results``; ``asked`` counts them."""

    def __init__(self, folder: Path, suite: Suite = SUITE, log: str | None = None) -> None:
        self.layout = Layout(Storage(str(folder)))
        self.table = Table(self.layout.storage, "gold/t", pipeline="p", log=log)
        if not self.table.exists:
            self.table.create(SCHEMA, "digest", time_column=TIME)
            self.table.fence(1)
            self.table.commit(self.table.refresh().advanced_to(1, NOON), (OPEN,))
        self.table.epoch = 1
        self.table.refresh()
        self.results: tuple[RuleResult, ...] = (BROKEN,)
        self.asked = 0
        make: Any = TableGate
        self.gate = make(None, self.layout, self.table, suite, None, is_visible=log is None)
        self.gate._version = lambda add, remove: None
        self.gate._validated = self._validated
        self.table.gate = self.gate

    def _validated(self, *_: object) -> tuple[RuleResult, ...]:
        self.asked += 1
        return self.results

    def commit(
        self,
        n: int,
        at: datetime = NOON,
        add: Sequence[DataFile] = (FINAL,),
        operation: int = 0,
        remove: Sequence[DataFile] = (),
    ) -> bool:
        """Commit a batch, or an operation at the table's batch. Returns whether it is visible."""
        self.gate.is_due(n)
        held = self.table.refresh()
        state = held.advanced_to(n, at)
        if operation:
            state = replace(state, kind="operation", operation=operation)
        try:
            self.table.commit(state, add, remove)
        except HeldError:
            assert self.table.refresh() == held
            return False
        self.table.refresh()
        self.gate.passed()
        return True

    def release(self, upto: int, operation: int = 0, log: str = "") -> Release:
        given = Release(upto, "anna", "right", NOON, log, operation)
        documents.release(self.layout, self.gate._name, given)
        return given

    @property
    def said(self) -> Any:
        return GoldPayload.of(self.table.state).gate


@pytest.fixture
def gated(tmp_path: Path) -> Gated:
    return Gated(tmp_path)


def test_a_version_that_breaks_a_rule_is_held_until_it_meets_it(gated: Gated) -> None:
    assert not gated.commit(2)
    assert not gated.commit(3, NOON + HOUR)
    hold = documents.held(gated.layout, "t")
    assert hold is not None
    assert (hold.n, hold.upto, hold.since, hold.at) == (1, 3, NOON, NOON + HOUR)
    gated.results = (MET, WARNED)
    assert gated.commit(3, NOON + HOUR)
    assert gated.said["broken"] == ["a"]
    assert documents.held(gated.layout, "t") is None
    gated.results = (BROKEN,)
    assert not gated.commit(4, NOON + 2 * HOUR)
    hold = documents.held(gated.layout, "t")
    assert hold is not None
    assert (hold.n, hold.since) == (3, NOON + 2 * HOUR)


@pytest.mark.parametrize("every", [timedelta(0), HOUR])
@pytest.mark.parametrize("back", [timedelta(milliseconds=1), 2 * HOUR, timedelta(days=365)])
def test_a_clock_that_was_set_back_lets_nothing_pass(
    tmp_path: Path, every: timedelta, back: timedelta
) -> None:
    gated = Gated(tmp_path, replace(SUITE, every=every))
    gated.results = (MET,)
    assert gated.commit(2)
    gated.results = (BROKEN,)
    assert not gated.commit(3, NOON - back)


@pytest.mark.parametrize("suite", [replace(SUITE, every=HOUR), replace(SUITE, on_final=True)])
@pytest.mark.parametrize("change", [{"add": (file("b"),)}, {"add": (), "remove": (FINAL,)}])
def test_an_operation_is_always_validated(
    tmp_path: Path, suite: Suite, change: dict[str, Any]
) -> None:
    gated = Gated(tmp_path, suite)
    gated.results = (MET,)
    assert gated.commit(2)
    gated.results = (BROKEN,)
    assert gated.commit(3, add=(file("a"),)), "a batch that is not due"
    assert gated.asked == 1
    assert not gated.commit(3, operation=1, **change)
    gated.results = (MET,)
    assert gated.commit(3, operation=1, **change)


def test_a_validation_is_of_one_version(gated: Gated) -> None:
    """A replay and a restore make other versions at the same batch id."""
    gated.table.commit(replace(gated.table.refresh().held("reset", 1), generation=2))
    assert not gated.commit(1, operation=4)
    (found,) = validations(gated.layout, "t")
    assert (found.n, found.operation, found.generation) == (1, 4, 2)


def test_a_release_is_void_after_a_reset(gated: Gated, tmp_path: Path) -> None:
    """A restore that reads the source again gives other rows the same batch id."""
    assert not gated.commit(2)
    hold = documents.held(gated.layout, "t")
    assert hold is not None
    documents.release(gated.layout, "t", hold.release("anna", "I have seen batch 2", NOON))
    held = gated.table.refresh()
    gated.table.commit(replace(held.held("reset", 1), generation=1))
    again = Gated(tmp_path)
    assert not again.commit(2)
    hold = documents.held(again.layout, "t")
    assert hold is not None
    documents.release(again.layout, "t", hold.release("anna", "and the other one", NOON))
    assert again.commit(2)
    assert again.said["released"]["reason"] == "and the other one"


def test_a_hold_begins_anew_where_the_table_has_gone_on(gated: Gated) -> None:
    assert not gated.commit(2)
    gated.release(2)
    gated.table.commit(gated.table.refresh().advanced_to(2, NOON), (FINAL,))
    assert not gated.commit(3, NOON + HOUR), "a driver that has not got to its end yet"
    hold = documents.held(gated.layout, "t")
    assert hold is not None
    assert (hold.n, hold.since) == (2, NOON + HOUR)


@pytest.mark.parametrize(
    ("upto", "operation", "n", "by", "passes"),
    [
        (2, 0, 2, 0, True),
        (2, 0, 3, 0, False),
        (3, 0, 2, 0, True),
        (1, 4, 1, 4, True),
        (1, 4, 1, 5, False),
        (1, 4, 2, 0, False),
        (1, 0, 1, 4, False),
        (1, 0, 2, 0, False),
    ],
)
def test_a_release_lets_one_version_pass(
    gated: Gated, upto: int, operation: int, n: int, by: int, passes: bool
) -> None:
    assert not gated.commit(n, operation=by)
    given = gated.release(upto, operation)
    assert gated.commit(n, operation=by) is passes
    if passes:
        assert gated.said["released"] == encoded(given)
        assert documents.released(gated.layout, "t") is None
        assert not gated.commit(n + 1)


def test_a_release_of_something_else_lets_nothing_pass(gated: Gated) -> None:
    gated.release(2)  # the table was not held
    assert not gated.commit(2)
    gated.release(2, log="of/a/rebuild")
    assert not gated.commit(2)


def test_the_table_is_tried_again_when_somebody_asks(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.gates.gate.PAUSE", 1e9)
    assert gated.gate.is_due(2)
    assert not gated.commit(2)
    assert not gated.gate.is_due(2)
    documents.ask_retry(gated.layout, "t", NOON)
    assert gated.gate.is_due(2)
    assert not gated.commit(2)
    assert not gated.gate.is_due(2), "a wish is for one try"
    assert gated.gate.stops(4) == ()
    gated.release(3)
    assert gated.gate.is_due(4)
    assert gated.gate.stops(4) == (3,)
    assert gated.gate.stops(3) == ()
    assert Gated(Path(gated.layout.storage.root)).gate.is_due(4), "another driver tries at once"


def test_it_is_asked_as_often_as_the_suite_says(tmp_path: Path) -> None:
    gated = Gated(tmp_path, replace(SUITE, every=HOUR))
    gated.results = (MET,)
    for minutes, count in ((0, 1), (59, 1), (60, 2), (119, 2)):
        assert gated.commit(gated.table.state.n + 1, NOON + timedelta(minutes=minutes))
        assert gated.asked == count
    other = replace(SUITE, every=HOUR, rules=(*SUITE.rules, Rule("b", "e", {})))
    changed = Gated(tmp_path, other)
    assert not changed.commit(9, NOON + timedelta(minutes=119))
    again = Gated(tmp_path, other)
    assert not again.commit(9, NOON + timedelta(minutes=119)), "what is held is always asked"


def test_a_suite_on_final_rows_is_not_asked_of_open_ones(tmp_path: Path) -> None:
    gated = Gated(tmp_path, replace(SUITE, on_final=True))
    assert gated.commit(2, add=(file("more-open"),))
    assert (gated.asked, gated.said) == (0, None)
    assert not gated.commit(3, add=(file("other-open"), FINAL))
    assert not gated.commit(3, add=(file("other-open"),)), "a held table is asked in any case"


LOG = "_headgate/rebuilds/7/gold/t"


def test_a_rebuild_is_asked_at_its_end_and_has_documents_of_its_own(tmp_path: Path) -> None:
    Gated(tmp_path)
    rebuilt = Gated(tmp_path, log=LOG)
    rebuilt.gate.is_due(3)
    rebuilt.table.commit(rebuilt.table.refresh().advanced_to(2, NOON), (FINAL,))
    assert rebuilt.asked == 0
    assert not rebuilt.commit(3)
    assert documents.held(rebuilt.layout, "t") is None
    hold = documents.held(rebuilt.layout, "t.rebuild")
    assert hold is not None
    assert (hold.n, hold.upto, hold.log) == (2, 3, LOG)
    rebuilt.release(3, log="_headgate/rebuilds/6/gold/t")
    assert not rebuilt.commit(3)
    rebuilt.release(3, log=LOG)
    assert rebuilt.commit(5), "it has to follow the current table"
    assert documents.released(rebuilt.layout, "t.rebuild") is not None
    assert rebuilt.commit(6)
    assert Gated(tmp_path).gate._hold is None


def test_the_last_version_of_a_rebuild_is_asked_about_even_if_it_has_no_rows(
    tmp_path: Path,
) -> None:
    Gated(tmp_path)
    rebuilt = Gated(tmp_path, log=LOG)
    rebuilt.gate.is_due(3)
    rebuilt.table.commit(rebuilt.table.refresh().advanced_to(2, NOON), (FINAL,))
    assert not rebuilt.commit(3, add=())
    rebuilt.results = (MET,)
    assert rebuilt.commit(3, add=())
    assert GoldPayload.of(rebuilt.table.refresh()).is_validated(3, 0)
    rebuilt.gate.is_due(9)
    state = rebuilt.table.state.advanced_to(4, NOON)
    rebuilt.table.commit(state, (FINAL,))
    assert not GoldPayload.of(rebuilt.table.refresh()).is_validated(4, 0)


def test_the_hold_of_another_rebuild_is_not_of_this_one(tmp_path: Path) -> None:
    assert not Gated(tmp_path, log=LOG).commit(2)
    assert Gated(tmp_path, log=LOG).gate._hold is not None
    assert Gated(tmp_path, log=LOG.replace("7", "8")).gate._hold is None
