"""What a gate decides: which versions it validates, what it holds, and what a release lets pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Rule, Suite
from headgate.flow.gates import documents
from headgate.flow.gates.broken_rows import BrokenRow, BrokenRows
from headgate.flow.gates.documents import Hold, Release
from headgate.flow.gates.gate import TableGate
from headgate.flow.gates.releases import token
from headgate.flow.gates.validations import validations
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import HeldError
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_changes import RowChange
from headgate.lake.tables.table import Table
from tests.unit.lake.tables.conftest import SCHEMA, TIME, file

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
        self.rows = BrokenRows({})
        self.asked = 0
        make: Any = TableGate
        args = (None, self.layout, self.table, suite, None, ("at",), ("k",))
        self.gate = make(*args, is_visible=log is None)
        self.gate._version = lambda add, remove: None
        self.gate._validated = self._validated
        self.gate._broken_rows = lambda version, rules: self.rows
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
    hold = documents.hold_reason(gated.layout, "t")
    assert hold is not None
    assert (hold.n, hold.upto, hold.since, hold.at) == (1, 3, NOON, NOON + HOUR)
    gated.results = (MET, WARNED)
    assert gated.commit(3, NOON + HOUR)
    assert gated.said["broken"] == ["a"]
    assert documents.hold_reason(gated.layout, "t") is None
    gated.results = (BROKEN,)
    assert not gated.commit(4, NOON + 2 * HOUR)
    hold = documents.hold_reason(gated.layout, "t")
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
    gated.results = (replace(BROKEN, unexpected=1),)
    assert not gated.commit(2)
    hold = documents.hold_reason(gated.layout, "t")
    assert hold is not None
    documents.release(gated.layout, "t", hold.release("anna", "I have seen batch 2", NOON))
    held = gated.table.refresh()
    gated.table.commit(replace(held.held("reset", 1), generation=1))
    again = Gated(tmp_path)
    again.results = gated.results
    assert not again.commit(2)
    hold = documents.hold_reason(again.layout, "t")
    assert hold is not None
    documents.release(again.layout, "t", hold.release("anna", "and the other one", NOON))
    assert again.commit(2)
    assert again.said["released"]["reason"] == "and the other one"


def test_a_hold_begins_anew_where_the_table_has_gone_on(gated: Gated) -> None:
    assert not gated.commit(2)
    gated.release(2)
    gated.table.commit(gated.table.refresh().advanced_to(2, NOON), (FINAL,))
    assert not gated.commit(3, NOON + HOUR), "a driver that has not got to its end yet"
    hold = documents.hold_reason(gated.layout, "t")
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
        assert gated.said["released"] == given.document()
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
    monkeypatch.setattr("headgate.flow.gates.gate.PAUSE", 1e9)
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
    assert documents.hold_reason(rebuilt.layout, "t") is None
    hold = documents.hold_reason(rebuilt.layout, "t.rebuild")
    assert hold is not None
    assert (hold.n, hold.upto, hold.log) == (2, 3, LOG)
    rebuilt.release(3, log="_headgate/rebuilds/6/gold/t")
    assert not rebuilt.commit(3)
    rebuilt.release(3, log=LOG)
    assert not rebuilt.commit(5), "nobody has seen what broke the rule"
    assert documents.released(rebuilt.layout, "t.rebuild") is None, "it would be tried all the time"
    assert Gated(tmp_path).gate._hold is None
    rebuilt.release(5, log=LOG)
    assert rebuilt.commit(5)


class Held(Gated):
    """The gold table ``t`` at batch 1. Rows with these digests break its rule, ``a``."""

    def __init__(self, folder: Path, *broken: str, log: str | None = None, **rule: Any) -> None:
        arguments = {"column": "c", **rule}
        self.rule = Rule("a", "e", arguments, condition="c > 0", action="hold")
        super().__init__(folder, replace(SUITE, rules=(self.rule,)), log)
        self.broken = broken

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(row.digest for row in self.rows.rows)

    @broken.setter
    def broken(self, digests: tuple[str, ...]) -> None:
        rows = tuple(BrokenRow(each, RowChange(None, {"c": each}, ("a",))) for each in digests)
        self.rows = BrokenRows({"a": list(digests)} if digests else {}, ("c",), rows)
        result = replace(MET, met=not digests, unexpected=len(digests), rows=10)
        self.results = (result,)

    @property
    def hold(self) -> Hold:
        found = documents.hold_reason(self.layout, self.gate._name)
        assert found is not None
        return found

    def release_held(self) -> None:
        documents.release(self.layout, self.gate._name, self.hold.release("anna", "right", NOON))

    def shown(self) -> list[str]:
        found = documents.shown_rows(self.layout, self.hold).rows
        return [str(row.after and row.after["c"]) for row in found]


def test_a_released_row_lets_later_versions_pass_until_a_row_is_new_or_changes(
    tmp_path: Path,
) -> None:
    held = Held(tmp_path, "row:1")
    assert not held.commit(2)
    assert held.shown() == ["row:1"]
    held.release_held()
    assert held.commit(2)
    assert (held.said["released"]["by"], held.said["earlier"]) == ("anna", [])
    assert held.commit(3)
    assert (held.said["broken"], held.said["released"]) == (["a"], None)
    assert held.said["earlier"] == [{"by": "anna", "at": NOON.isoformat(), "reason": "right"}]
    outcomes = [each.outcome for each in validations(held.layout, "t")]
    assert outcomes == ["held", "released", "broken"]
    held.broken = ("row:1", "row:2")
    assert not held.commit(4)
    assert held.shown() == ["row:2"], "the other one is released"
    assert str(held.hold.failed[0]) == "a (critical): not met, 2 rows break it, 1 of them released"
    held.release_held()
    assert held.commit(4)
    held.broken = ("row:1 changed", "row:2")
    assert not held.commit(5)
    assert held.shown() == ["row:1 changed"]
    held.broken = ("row:2",)
    assert held.commit(5)


def test_a_new_driver_a_restore_and_a_rebuild_know_what_is_released(tmp_path: Path) -> None:
    held = Held(tmp_path, "row:1")
    assert not held.commit(2)
    held.release_held()
    assert held.commit(2)
    assert Held(tmp_path, "row:1").commit(3)
    restored = Held(tmp_path, "row:1")
    restored.table.commit(replace(restored.table.refresh().held("reset", 1), generation=7))
    assert restored.commit(4)
    rebuilt = Held(tmp_path, "row:1", log=LOG)
    assert rebuilt.commit(4)
    rebuilt.broken = ("row:1", "row:3")
    assert not rebuilt.commit(5)
    rebuilt.release_held()
    assert rebuilt.commit(5)
    assert Held(tmp_path, "row:3").commit(6), "a rebuild's release is for the table, too"


def test_what_was_released_by_one_rule_breaks_another(tmp_path: Path) -> None:
    held = Held(tmp_path, "row:1")
    assert not held.commit(2)
    held.release_held()
    assert held.commit(2)
    assert not Held(tmp_path, "row:1", min_value=3).commit(3)


def test_two_releases_at_once_both_count(tmp_path: Path) -> None:
    held = Held(tmp_path, "row:1")
    assert not held.commit(2)
    first = held.hold.release("anna", "right", NOON)
    held.broken = ("row:1", "row:2")
    assert not held.commit(3)
    second = held.hold.release("bert", "right, too", NOON)
    documents.release(held.layout, "t", second)
    documents.release(held.layout, "t", first)
    assert held.commit(3), "the last one is for batch 2, but both rows are released"


def test_a_release_after_the_hold_has_ended_accepts_only_what_it_has_seen(tmp_path: Path) -> None:
    held = Held(tmp_path, "row:1")
    assert not held.commit(2)
    hold = held.hold
    held.broken = ()
    assert held.commit(2)
    documents.release(held.layout, "t", hold.release("anna", "too late", NOON))
    held.broken = ("row:2",)
    assert not held.commit(3)
    held.broken = ("row:1",)
    assert held.commit(3)


def test_with_mostly_released_rows_count_as_met(tmp_path: Path) -> None:
    """Of 10 rows, 1 may break the rule."""
    held = Held(tmp_path, "row:1", "row:2", mostly=0.9)
    assert not held.commit(2)
    held.release_held()
    assert held.commit(2)
    held.broken = ("row:1", "row:2", "row:3")
    assert held.commit(3)
    held.broken = ("row:1", "row:2", "row:3", "row:4")
    assert not held.commit(4)


def test_rows_that_only_a_released_rule_finds_are_not_shown() -> None:
    """A rule about the greatest value finds rows, too, but its release accepts the value."""
    a, b = SUITE.rules[0], replace(SUITE.rules[0], id="b")
    rows = tuple(
        BrokenRow(digest, RowChange(None, {"c": digest}, ("a", "b")))
        for digest in ("row:1", "row:2")
    )
    left = BrokenRows({}, ("c",), rows).without([a], {token(a, "row:1")})
    assert [(row.after, row.rules) for row in left] == [({"c": "row:2"}, ("a",))]
    assert len(BrokenRows({}, ("c",), rows).without([a, b], {token(a, "row:1")})) == 2


def test_too_many_rows_are_released_for_one_version(tmp_path: Path) -> None:
    held = Held(tmp_path, "row:1")
    held.rows = BrokenRows({}, ("c",), held.rows.rows)
    assert not held.commit(2)
    held.release_held()
    assert held.commit(2)
    assert not held.commit(3)


def test_too_many_rows_of_a_rebuild_are_not_released_for_another_one(tmp_path: Path) -> None:
    Gated(tmp_path)
    for log in (LOG, LOG.replace("7", "8")):
        rebuilt = Held(tmp_path, "row:1", log=log)
        rebuilt.rows = BrokenRows({}, ("c",), rebuilt.rows.rows)
        assert not rebuilt.commit(2), log
        rebuilt.release_held()


@pytest.mark.parametrize(
    ("first", "then", "passes"),
    [
        (replace(BROKEN, observed="5000"), replace(BROKEN, observed="5000"), True),
        (replace(BROKEN, observed="5000"), replace(BROKEN, observed="5001"), False),
        (replace(BROKEN, observed="[a, ...]"), replace(BROKEN, observed="[a, ...]"), False),
        (replace(BROKEN, error="no such thing"), replace(BROKEN, error="no such thing"), False),
        (replace(BROKEN, unexpected=2), replace(BROKEN, unexpected=2), False),
        (
            replace(BROKEN, observed="7, and 6 in silver", accepts=("1",)),
            replace(BROKEN, observed="9, and 8 in silver", accepts=("1",)),
            True,
        ),
    ],
)
def test_a_rule_about_the_whole_table_is_released_while_its_value_is_the_same(
    tmp_path: Path, first: RuleResult, then: RuleResult, passes: bool
) -> None:
    """A value that is not known, and rows that are not known, are released for one version."""
    held = Held(tmp_path)
    held.results = (first,)
    assert not held.commit(2)
    held.release_held()
    assert held.commit(2)
    held.results = (then,)
    assert held.commit(3) is passes


def test_a_rebuild_with_another_value_is_released_until_it_is_published(tmp_path: Path) -> None:
    Gated(tmp_path)
    rebuilt = Held(tmp_path, log=LOG)
    rebuilt.results = (replace(BROKEN, observed="5000"),)
    assert not rebuilt.commit(2)
    rebuilt.release_held()
    rebuilt.results = (replace(BROKEN, observed="5001"),)
    assert rebuilt.commit(3)
    other = Held(tmp_path, log=LOG.replace("7", "8"))
    other.results = rebuilt.results
    assert not other.commit(2)


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
