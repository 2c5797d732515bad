"""How far the stages of a job get, and what they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.history.savepoints.resets import ResetTarget
from headgate.lake.tables.damage import damaged_file
from headgate.lake.tables.errors import DamagedFileError, LogGapError
from headgate.lake.tables.live_files import live_files
from tests.support.decisions import reset_to
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import WIDE, Lake, declared


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Two batches; only bronze has the second."""
    with without_spark():
        lake = Lake(declared(tmp_path, WIDE), tmp_path / "root")
        lake.land([Record(0)], [Record(1)])
        lake.ingest(1)
        assert lake.runtime.catch_up(lake.clock())
        lake.ingest(2)
        yield lake


def n(lake: Lake, path: str) -> int:
    return lake.runtime.table(path).reader().refresh().n


def trouble(lake: Lake) -> str | None:
    return lake.runtime.stages.trouble


def test_gold_waits_for_a_reset_of_silver_and_says_that_it_is_behind(lake: Lake) -> None:
    stages, now, gold = lake.runtime.stages, lake.clock(), ("gold/per_minute", "gold/per_hour")
    assert not stages.catch_up(("silver", "gold"), now, None, {"silver/good"}, 0)
    assert n(lake, "silver/good") == 2
    assert [n(lake, path) for path in gold] == [1, 1]
    assert stages.catch_up(("silver", "gold"), now, None, (), 0)
    assert [n(lake, path) for path in gold] == [2, 2]


@pytest.mark.slow
def test_silver_that_has_taken_one_step_says_that_it_is_behind(lake: Lake) -> None:
    """A table is built anew beside one that is up to date. Its steps end at operations."""
    lake.drain()
    lake.land([Record(2)])
    lake.ingest(3)
    lake.catch_up()
    resets, stages, now = lake.runtime.resets, lake.runtime.stages, lake.clock()
    reset_to(lake.runtime.control, {"silver/other": ResetTarget()}, now)
    resets.carry_out(lake.runtime.owned(), now)
    for level, reached in ((False, 2), (True, 3)):
        assert stages.catch_up(("silver",), now, 1, (), 1) is level
        assert (n(lake, "silver/other"), n(lake, "silver/good")) == (reached, 3)


class _Page(Exception):
    """Spark's error for a damaged page of a file."""


def file_of(lake: Lake, path: str) -> Path:
    table = lake.runtime.table(path).reader()
    table.refresh()
    return Path(table.storage.uri(live_files(table.handle)[0].path))


def fails(error: Exception) -> Callable[..., None]:
    def raise_(*_: object) -> None:
        raise error

    return raise_


@pytest.mark.parametrize("how", ["gap", "file", "table", "page"])
def test_gold_that_cannot_go_on_does_not_keep_its_rebuild_from_its_end(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    file = file_of(lake, "gold/per_minute")
    errors = {
        "gap": LogGapError("a gap", "b"),
        "file": damaged_file(str(file), "is missing"),
        "table": DamagedFileError("no states", "b", at=str(file.parents[2])),
        "page": _Page(f"cannot read: {file}"),
    }
    if how == "page":
        file.write_bytes(file.read_bytes()[:8])
    error, stages = errors[how], lake.runtime.stages
    now, layers = lake.clock(), ("silver", "gold")
    monkeypatch.setattr(stages.gold["per_minute"], "catch_up", fails(error))
    monkeypatch.setattr(stages, "_replaced", {"gold/per_hour"})
    with pytest.raises(type(error)):
        stages.catch_up(layers, now, None, (), 0)
    assert trouble(lake) is None
    monkeypatch.setattr(stages, "_replaced", {"gold/per_minute"})
    assert not stages.catch_up(layers, now, None, (), 0)
    assert (n(lake, "gold/per_minute"), n(lake, "gold/per_hour")) == (1, 2)
    what = {"gap": "a gap", "table": "no states"}.get(how, str(file))
    said = f"gold/per_minute stays as it is until its rebuild is published: {what}"
    assert (trouble(lake) or "").startswith(said)
    # It is not tried again: reading until the damage could take long, in each batch.
    monkeypatch.setattr(stages.gold["per_minute"], "catch_up", fails(AssertionError()))
    assert not stages.catch_up(layers, now, None, (), 0)


@pytest.mark.parametrize("how", ["page of silver", "machine"])
def test_what_a_rebuild_does_not_replace_ends_the_job(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A rebuild reads silver, too."""
    silver = file_of(lake, "silver/good")
    error: Exception = OSError("no memory")
    if how == "page of silver":
        silver.write_bytes(silver.read_bytes()[:8])
        error = _Page(f"cannot read: {silver}")
    stages = lake.runtime.stages
    monkeypatch.setattr(stages, "_replaced", {"gold/per_minute"})
    monkeypatch.setattr(stages.gold["per_minute"], "catch_up", fails(error))
    with pytest.raises(type(error)):
        stages.catch_up(("gold",), lake.clock(), None, (), 0)
    assert trouble(lake) is None
