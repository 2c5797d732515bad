"""The engine does what the model does, commit by commit, in any interleaving."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.protocol.histories import History, history_faults
from tests.property.protocol.invariants import faults
from tests.property.protocol.lockstep import Lockstep
from tests.property.protocol.past import live_files
from tests.property.protocol.scenario import BAD, GOOD, LATE, LEFT_OUT, Event, Scenario
from tests.property.protocol.traces import Trace, stored
from tests.support.fake_stages import without_spark
from tests.support.rounds import ROUNDS, some

EVENTS = (GOOD, BAD, LATE, Event(3), LEFT_OUT, GOOD, Event(5))
BEGIN, GO_ON, CLOSE = "list batch batch batch", "batch batch", "batch close batch"

PLAYS = {
    "take over": (("fused", "fused", "fused", "fused"), (BEGIN, CLOSE, GO_ON, GO_ON)),
    "jobs of layers": (
        ("fused", "bronze", "silver", "gold", "silver"),
        (BEGIN, CLOSE, "go go go", "go go go", "go"),
    ),
    "restore": (
        ("fused", "savepoint", "fused", "fused", "restore"),
        (BEGIN, "", CLOSE, GO_ON, ""),
    ),
    "reread": (("fused", "savepoint", "fused", "reread", "fused"), (BEGIN, "", CLOSE, "", GO_ON)),
    "two restores": (
        ("fused", "savepoint", "reread", "fused", "savepoint", "restore"),
        (BEGIN, "", "", CLOSE, "", ""),
    ),
    "gold anew": (("fused", "fused", "rebuild", "savepoint"), (BEGIN, CLOSE, "", "")),
    "beside jobs of layers": (
        ("fused", "savepoint", "bronze", "silver", "gold", "restore"),
        (BEGIN, "", CLOSE, "go go", "go go", ""),
    ),
}
SEEDS = range(10 * ROUNDS or 1)


@pytest.fixture(autouse=True)
def arrow() -> Iterator[None]:
    with without_spark():
        yield


def walked(folder: Path, play: str, seed: int) -> Lockstep:
    roles, scripts = PLAYS[play]
    lockstep = Lockstep(folder, Scenario(EVENTS, roles=roles), scripts)
    lockstep.play(lockstep.by_chance(seed))
    return lockstep


def replayed(folder: Path, trace: Trace) -> Lockstep:
    lockstep = Lockstep(folder, trace.scenario, trace.scripts, trace.crew, trace.alone)
    lockstep.play(trace.moves)
    return lockstep


def require_same(lockstep: Lockstep) -> None:
    """Neither the model nor the engine has a violation, and their tables hold the same events."""
    assert [*faults(lockstep.scenario, lockstep.world)] == []
    assert history_faults(lockstep.layout, lockstep.pipeline) == []
    (gold,) = lockstep.pipeline.gold.values()
    *_, (_, there) = History(lockstep.layout, lockstep.pipeline, gold).worlds()
    for table in ("bronze", "quarantine", "silver", "late"):
        ours, theirs = (
            Counter(world.read(live_files(world.log(table)))) for world in (lockstep.world, there)
        )
        assert ours == theirs, table
        assert there.head(table).n == lockstep.world.head(table).n


@pytest.mark.slow
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_engine_keeps_step_with_the_model(tmp_path: Path, play: str, seed: int) -> None:
    require_same(walked(tmp_path, play, seed))


@pytest.mark.parametrize("trace", some([(trace,) for trace in stored()], 4), ids=str)
def test_what_breaks_a_mutant_does_not_break_the_engine(tmp_path: Path, trace: Trace) -> None:
    require_same(replayed(tmp_path, trace))
