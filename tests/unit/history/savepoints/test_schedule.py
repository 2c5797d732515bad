"""The savepoints that a running pipeline takes on its schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.declaration.model import SavepointSchedule
from headgate.driver.schedules import AGAIN_AFTER, NOTE, ScheduledSavepoints
from headgate.history.savepoints.store import savepoints
from tests.unit.history.savepoints.conftest import NOW, add_batch
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

HOUR = timedelta(hours=1)


def scheduled(lake: Lake, **keys: object) -> ScheduledSavepoints:
    plan = SavepointSchedule(every=HOUR, keep=2, keep_for=timedelta(0))
    pipeline = replace(lake.pipeline, savepoints=replace(plan, **keys))  # type: ignore[arg-type]
    return ScheduledSavepoints(lake.layout, pipeline)


def test_one_an_hour_and_the_newest_two_are_kept(lake: Lake) -> None:
    schedule = scheduled(lake)
    for minutes in range(0, 241, 20):
        taken = schedule.run_due(NOW + timedelta(minutes=minutes))
        assert (taken is not None) == (minutes % 60 == 0)
    kept = savepoints(lake.layout)
    assert [s.created for s in kept] == [NOW + 4 * HOUR, NOW + 3 * HOUR]  # type: ignore[union-attr]
    assert {s.note for s in kept} == {NOTE}  # type: ignore[union-attr]


def test_a_new_driver_goes_on_with_the_schedule_of_the_last(lake: Lake) -> None:
    scheduled(lake).run_due(NOW)
    again = scheduled(lake)
    assert again.run_due(NOW + HOUR / 2) is None
    assert again.run_due(NOW + HOUR) is not None


def test_a_clock_that_was_ahead_does_not_silence_it(lake: Lake) -> None:
    schedule = scheduled(lake)
    assert schedule.run_due(NOW) is not None
    assert schedule.run_due(NOW + 9 * HOUR) is not None
    # The clock was set back. First the same driver goes on, then the next one.
    assert schedule.run_due(NOW + HOUR) is not None
    assert schedule.run_due(NOW + 1.5 * HOUR) is None
    again = scheduled(lake)
    assert again.run_due(NOW + 1.5 * HOUR) is None
    assert again.run_due(NOW + 2 * HOUR) is not None


def test_none_where_none_is_declared(lake: Lake) -> None:
    assert ScheduledSavepoints(lake.layout, lake.pipeline).run_due(NOW) is None
    assert not savepoints(lake.layout)


def test_what_keeps_it_from_taking_one_is_told_and_passes(lake: Lake) -> None:
    schedule = scheduled(lake)
    log = Path(lake.layout.storage.uri("silver/good/_delta_log"))
    entry = max(log.glob("*.json"))
    content = entry.read_bytes()
    entry.write_bytes(content[:-20])
    assert schedule.run_due(NOW) is None
    assert (schedule.trouble or "").startswith(f"no savepoint at {NOW:%F %T}Z: ")
    entry.write_bytes(content)
    add_batch(lake, 3)
    # The trouble may have passed, so the next try does not wait for the whole interval.
    assert schedule.run_due(NOW + AGAIN_AFTER / 2) is None
    assert schedule.run_due(NOW + AGAIN_AFTER) is not None
    assert schedule.trouble is None
    assert schedule.run_due(NOW + HOUR) is None
    assert schedule.run_due(NOW + HOUR + AGAIN_AFTER) is not None


def test_one_that_was_taken_is_not_taken_again_where_forgetting_fails(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = scheduled(lake)

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headgate.driver.schedules.prune_savepoints", fail)
    assert schedule.run_due(NOW) is None
    assert schedule.trouble is not None
    assert schedule.run_due(NOW + AGAIN_AFTER) is None
    assert len(savepoints(lake.layout)) == 1


def test_what_lies_among_the_savepoints_ends_no_start(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("headgate.driver.schedules.savepoints", refuse)
        schedule = scheduled(lake)
    assert schedule.run_due(NOW) is not None


def test_what_a_declaration_says(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION + "savepoints: {every: 6 hours}\n")
    assert load(file).savepoints == SavepointSchedule(6 * HOUR, 5, timedelta(days=7))
    file.write_text(DECLARATION + "savepoints: {every: 6 hours, keep: 0}\n")
    with pytest.raises(DeclarationError, match=r"savepoints\.keep"):
        load(file)
    file.write_text(DECLARATION + "savepoints: {keep: 3}\n")
    with pytest.raises(DeclarationError, match="every"):
        load(file)
