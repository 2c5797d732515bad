"""Which validations are events: the first of a hold, each release, and the end of a hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.flow.gates import events as module
from headgate.flow.gates.documents import Release
from headgate.flow.gates.events import GateEvent, GateEvents
from headgate.flow.gates.validations import Validation
from headgate.lake.storage.layout import Layout
from tests.support.sinks import declared

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAYOUT = Layout.of("/nowhere", "shop")
ANN = Release(9, "ann", "it is right", NOON)


def validation(
    n: int, *, holds: bool, released: Release | None = None, log: str = ""
) -> Validation:
    suite: Any = None
    result: Any = _Result(holds)
    at = NOON + timedelta(minutes=n)
    return Validation("sales", n, n, at, suite, (result,), released, log)


class _Result:
    def __init__(self, holds: bool) -> None:
        self.holds, self.met = holds, not holds

    def __str__(self) -> str:
        return "sane: 1 rows break it"


def found(monkeypatch: pytest.MonkeyPatch, *those: Validation, after: str = "") -> list[GateEvent]:
    named = [(f"{place:03d}", each) for place, each in enumerate(those)]
    monkeypatch.setattr(module, "named_validations", lambda layout, table, after: iter(named))
    return list(GateEvents(LAYOUT, "sales").after(after))


def said(them: list[GateEvent]) -> list[str]:
    return [f"{each.event} {each.n}{' rebuild' if each.is_rebuild else ''}" for each in them]


def test_a_hold_is_one_event_and_so_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    them = found(
        monkeypatch,
        validation(1, holds=False),
        validation(2, holds=True),
        validation(3, holds=True),
        validation(3, holds=False),
        validation(4, holds=False),
        validation(5, holds=True),
        validation(5, holds=True, released=ANN),
        validation(6, holds=False),
        validation(7, holds=True, log="a rebuild"),
        validation(8, holds=True),
    )
    wanted = ["held 2", "passed 3", "held 5", "released 5", "held 7 rebuild", "held 8"]
    assert said(them) == wanted
    assert (them[3].by, them[3].reason) == ("ann", "it is right")
    assert them[0].rules == ("sane: 1 rows break it",)
    assert len({each.id for each in them}) == len(them)


def test_those_after_a_name_are_what_they_are_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    those = (validation(2, holds=True), validation(3, holds=True), validation(4, holds=False))
    whole = found(monkeypatch, *those)
    assert said(whole) == ["held 2", "passed 4"]
    assert found(monkeypatch, *those, after=whole[0].name) == whole[1:]
    assert found(monkeypatch, *those, after=whole[1].name) == []


def test_versions_at_one_batch_have_ids_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two replays or rebuilds that are held at one batch, and a batch that is held again after a
    restore."""
    held, passed = validation(2, holds=True), validation(2, holds=False)
    (first, end) = found(monkeypatch, held, passed)
    others = [
        replace(each, operation=operation, generation=generation)
        for operation, generation in ((1, 0), (2, 0), (0, 1), (1, 1))
        for each in (held, passed)
    ]
    rebuilds = [validation(2, holds=True, log=log) for log in ("one rebuild", "another")]
    more = found(monkeypatch, *others, *rebuilds)
    assert len({each.id for each in (first, end, *more)}) == 12


def test_a_table_without_a_gate_has_no_events() -> None:
    sink = "webhook: {url: 'https://receiver.example'}"
    with pytest.raises(DeclarationError, match="there is no gold table with expectations"):
        declared(f"{sink}, when: final", source="gate.per_hour")
