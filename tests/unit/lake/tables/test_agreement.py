"""A log that has lost its end looks undamaged; a comparison with other tables shows the loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.lake.tables.agreement import disagreements
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from tests.unit.insight.ledger.conftest import DECLARATION

BRONZE, ASIDE, LOG = "bronze/events", "quarantine/events", "_headgate/files/events"
SILVER, LATE, GOLD = "silver/good", "late/per_minute", "gold/per_minute"
LEVEL = {
    DECISIONS: replace(State.empty(DECISIONS), n=3, generation=2),
    BRONZE: State(BronzePayload({"sequence": 9}), n=5, generation=2),
    LOG: replace(State.empty(LOG), n=9),
    ASIDE: replace(State.empty(ASIDE), n=4, total={"quarantined": 3}),
    SILVER: replace(State.empty(SILVER), n=5, total={"quarantined": 3}, generation=2),
    LATE: replace(State.empty(LATE), n=2, total={"late": 1}),
    GOLD: replace(State.empty(GOLD), n=5, total={"late": 1}, operation=2),
}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    return load(file)


def told(pipeline: Pipeline, awaiting: tuple[str, ...] = (), **changed: State | None) -> list[str]:
    states = {**LEVEL, **{_PATHS[name]: state for name, state in changed.items()}}
    numbered = {path: (7, state) for path, state in states.items() if state is not None}
    return [found.table for found in disagreements(pipeline, numbered, awaiting)]


_PATHS = {
    "decisions": DECISIONS,
    "bronze": BRONZE,
    "log": LOG,
    "aside": ASIDE,
    "silver": SILVER,
    "late": LATE,
    "gold": GOLD,
}


def test_level_tables_agree(pipeline: Pipeline) -> None:
    assert told(pipeline) == []


def test_what_a_crash_leaves_agrees(pipeline: Pipeline) -> None:
    """Side tables are committed first, and bronze goes ahead of everything."""
    ahead = replace(LEVEL[BRONZE], n=8, payload=BronzePayload({"sequence": 12}))
    assert told(pipeline, bronze=ahead, log=replace(LEVEL[LOG], n=14)) == []
    assert told(pipeline, aside=replace(LEVEL[ASIDE], n=6, total={"quarantined": 5})) == []
    assert told(pipeline, late=replace(LEVEL[LATE], n=6, total={"late": 3})) == []
    assert told(pipeline, gold=State.empty(GOLD), late=State.empty(LATE)) == []


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("bronze", replace(LEVEL[BRONZE], n=4)),
        ("decisions", replace(LEVEL[DECISIONS], n=1)),
        ("decisions", replace(LEVEL[DECISIONS], generation=1)),
        ("decisions", None),
        ("log", replace(LEVEL[LOG], n=8)),
        ("log", None),
        ("aside", replace(LEVEL[ASIDE], n=3, total={"quarantined": 2})),
        ("aside", None),
        ("silver", replace(LEVEL[SILVER], n=4)),
        ("silver", None),
        ("late", State.empty(LATE)),
        ("late", None),
    ],
)
def test_a_lost_end_is_told_by_the_tables_around_it(
    pipeline: Pipeline, name: str, state: State | None
) -> None:
    assert set(told(pipeline, (), **{name: state})) == {_PATHS[name]}


def test_bronze_as_a_whole(pipeline: Pipeline) -> None:
    assert set(told(pipeline, bronze=None)) == {BRONZE}


def test_what_is_about_to_go_back_is_compared_with_nothing(pipeline: Pipeline) -> None:
    back = replace(LEVEL[BRONZE], n=3, payload=BronzePayload({"sequence": 5}))
    assert told(pipeline, bronze=back) == [BRONZE]
    assert told(pipeline, (SILVER, GOLD, LATE, ASIDE), bronze=back) == []
    assert told(pipeline, (LATE,), late=State.empty(LATE)) == []
    assert told(pipeline, (GOLD,), silver=replace(LEVEL[SILVER], n=4)) == []
