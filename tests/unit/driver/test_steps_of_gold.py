"""Gold tables with steps: batches wait until a step is due, and nothing waits for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.load import load
from headgate.driver.publishing import Publications
from headgate.driver.run import CatchUp
from headgate.driver.task import RebuildRequest
from headgate.lake.tables import history
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.live_files import live_files
from tests.support.arrow_tables import rows_of
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import NARROW, WIDE, Lake, declared
from tests.support.maintained import trimmed

MINUTE, HOUR = "gold/per_minute", "gold/per_hour"
LATENESS = "    allowed_lateness: 0 seconds\n"


def with_step(declaration: str, step: str) -> str:
    """A declaration whose table per minute has a step."""
    assert LATENESS in declaration
    return declaration.replace(LATENESS, f"{LATENESS}    step: {step}\n")


@dataclass
class Stream:
    """A driver between batches, and the clock by which its steps are due."""

    lake: Lake
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.lake.start()
        self.catch_up = self._caught_up_by()

    def _caught_up_by(self) -> CatchUp:
        runtime = self.lake.runtime
        for stages in (runtime._declared, runtime.stages, runtime._rebuilt):
            for schedule in stages._schedules.values() if stages else ():
                schedule._clock = lambda: self.seconds
                schedule._due = self.seconds
        return CatchUp(runtime, Publications((), lambda: self.seconds), self.lake.clock)

    def batch(self, *records: Record) -> None:
        """A batch arrives, and the tables are brought up as after each batch."""
        self.arrive(*records)
        self.catch_up.run(one_step=True)

    def arrive(self, *records: Record) -> None:
        self.lake.land(records or [Record(0)])
        self.lake.ingest()

    def idle(self, seconds: float) -> None:
        """No batch arrives for some seconds."""
        self.seconds += seconds
        self.catch_up.run_rest()

    def n(self, path: str = MINUTE) -> int:
        return self.lake.runtime.table(path).reader().refresh().n

    def steps(self, path: str = MINUTE) -> int:
        """The number of steps that a table has taken."""
        table = self.lake.runtime.table(path).reader()
        return sum(commit.state.kind == "data" for commit in history.lineage(table))

    def events(self, path: str = MINUTE) -> int:
        """The number of events that a table has folded."""
        table = self.lake.runtime.table(path).reader()
        table.refresh()
        files: tuple[DataFile, ...] = live_files(table.handle)
        return sum(row["events"] for row in rows_of(table, files))


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Stream]]:
    """Begins a stream whose tables have the first batch."""

    def begin(declaration: str = WIDE, step: str = "30 seconds") -> Stream:
        lake = Lake(declared(tmp_path, with_step(declaration, step)), tmp_path / "root")
        stream = Stream(lake)
        stream.batch()
        assert stream.n() == 1, "the first step of a driver is due at once"
        return stream

    with without_spark():
        yield begin


def test_batches_wait_for_a_step_and_other_tables_do_not(begin: Callable[..., Stream]) -> None:
    stream = begin()
    for _ in range(3):
        stream.seconds += 1
        stream.batch()
    assert (stream.n(), stream.n(HOUR), stream.n("silver/good")) == (1, 4, 4)
    stream.seconds = 30
    stream.batch()
    assert (stream.n(), stream.steps(), stream.steps(HOUR)) == (5, 2, 5)
    assert stream.events() == 5


def test_an_idle_stream_wakes_up_for_a_step(begin: Callable[..., Stream]) -> None:
    stream = begin()
    stream.batch()
    for _ in range(29):
        stream.idle(1)
        assert stream.n() == 1
    stream.idle(1)
    assert (stream.n(), stream.events()) == (2, 2)
    # Then nothing is left to do, and steps without batches are none.
    stream.catch_up._runtime = None  # type: ignore[assignment]
    stream.idle(1000)


def test_the_first_batch_after_a_quiet_time_does_not_wait(begin: Callable[..., Stream]) -> None:
    stream = begin()
    stream.seconds = 100
    stream.catch_up.run(one_step=True)  # after a batch of another source
    stream.batch()
    assert stream.n() == 2


def test_two_tables_over_one_silver_table_have_steps_of_their_own(
    begin: Callable[..., Stream],
) -> None:
    other = "    allowed_lateness: 1 minute\n"
    stream = begin(WIDE.replace(other, f"{other}    step: 4 seconds\n"), "7 seconds")
    reached = list[tuple[int, int]]()
    for _ in range(8):
        stream.seconds += 1
        stream.batch()
        reached.append((stream.n(), stream.n(HOUR)))
    assert reached == [(1, 1), (1, 1), (1, 1), (1, 5), (1, 5), (1, 5), (8, 5), (8, 9)]


def test_auto_depends_on_the_duration_of_steps(
    begin: Callable[..., Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = begin(step="auto")
    stage: Any = stream.lake.runtime.stages.gold["per_minute"]
    prepare = stage._prepare_gold

    def slow(*of_step: Any) -> Any:
        stream.seconds += 5
        return prepare(*of_step)

    monkeypatch.setattr(stage, "_prepare_gold", slow)
    stream.batch()
    assert (stream.n(), stream.seconds) == (2, 5)
    stream.batch()
    stream.idle(14)
    assert stream.n() == 2
    stream.idle(1)
    assert (stream.n(), stream.seconds) == (3, 25)


def test_an_operation_is_carried_out_at_once(begin: Callable[..., Stream]) -> None:
    stream = begin()
    stream.batch()
    stream.lake.operate("drain")
    stream.idle(0)  # what the last batch has left is brought up between batches
    table = stream.lake.runtime.table(MINUTE).reader()
    assert (stream.n(), table.refresh().operation) == (2, 1)
    stream.batch()
    assert stream.n() == 2, "without another operation, the next batch waits"


def test_an_operation_on_another_table_does_not_concern_it(begin: Callable[..., Stream]) -> None:
    stream = begin()
    stream.batch()
    stream.lake.operate("late_replay", table="per_hour", **{"from": None}, to=None, keys={})
    stream.idle(0)
    hour = stream.lake.runtime.table(HOUR).reader().refresh()
    assert (stream.n(), hour.operation) == (1, 1)


def test_the_end_of_a_run_takes_all_steps(begin: Callable[..., Stream]) -> None:
    """The end of ``--once``, of a drain, of input, and what a load folds."""
    stream = begin()
    for _ in range(2):
        stream.batch()
    stream.catch_up.run()
    assert (stream.n(), stream.steps()) == (3, 2)


def test_a_driver_that_starts_takes_a_step(begin: Callable[..., Stream]) -> None:
    stream = begin()
    stream.batch()
    stream.restart()
    stream.catch_up.run(one_step=True)
    assert (stream.n(), stream.events()) == (2, 2)


def test_a_table_that_is_far_behind_goes_on_until_it_is_up_to_date(
    begin: Callable[..., Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "ROWS_PER_STEP", 2)
    stream = begin()
    for _ in range(5):
        stream.batch()
    stream.seconds = 30
    for reached in (3, 5, 6):
        stream.idle(0)
        assert stream.n() == reached
    stream.batch()
    assert stream.n() == 6


def test_a_change_of_a_step_changes_no_table(begin: Callable[..., Stream], tmp_path: Path) -> None:
    stream = begin()
    stream.batch()
    lake = stream.lake
    lake.pipeline = declared(tmp_path, with_step(WIDE, "2 seconds"))
    stream.restart()
    stream.catch_up.run(one_step=True)
    assert lake.runtime.rebuild is None
    assert (stream.n(), stream.steps()) == (2, 2)
    stream.batch()
    stream.idle(2)
    assert (stream.n(), stream.events()) == (3, 3)
    lake.pipeline = declared(tmp_path, WIDE)
    stream.restart()
    for n in (4, 5):
        stream.batch()
        assert lake.runtime.rebuild is None
        assert stream.n() == n


def test_a_rebuild_does_not_wait(begin: Callable[..., Stream]) -> None:
    stream = begin(NARROW, "1 day")
    for _ in range(3):
        stream.batch()
    assert stream.n() == 1
    lake = stream.lake
    lake.anew = RebuildRequest(tables=(MINUTE,))
    stream.restart()
    assert MINUTE in lake.runtime._rebuilt_tables
    for stages in (lake.runtime.stages, lake.runtime._rebuilt):
        for schedule in stages._schedules.values():  # type: ignore[union-attr]
            schedule._due = 1000
    stream.catch_up.run(one_step=True)
    assert MINUTE not in lake.runtime._rebuilt_tables
    assert (stream.n(), stream.events()) == (4, 4)


def test_maintenance_keeps_what_a_table_that_waits_has_to_read(
    begin: Callable[..., Stream],
) -> None:
    stream = begin()
    for _ in range(3):
        stream.batch()
    trimmed(stream.lake)
    assert stream.n() == 1
    stream.idle(30)
    assert (stream.n(), stream.events()) == (4, 4)


def test_a_table_that_waits_is_no_reason_to_wait_for_a_savepoint(
    begin: Callable[..., Stream],
) -> None:
    stream = begin()
    stream.batch()
    savepoint = stream.lake.savepoint()
    stream.batch()
    stream.lake.restore(savepoint)
    stream.lake.pipeline = load(stream.lake.pipeline.file)
    stream.restart()
    stream.catch_up.run(one_step=True)
    assert (stream.n(), stream.events()) == (3, 3)
