"""The last listing of a run with ``once``: which files it waits for."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.declaration.load import load
from headgate.driver.errors import StopRequested
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.files.intake import FilesIntake
from headgate.flow.sources.files.kind import Files
from headgate.flow.sources.files.landing import LandingAwayError, LandingError, reaching
from headgate.flow.sources.files.micro_batches import FilesMicroBatches, FilesRange
from headgate.flow.sources.micro_batches import SourceBatch, SourceContext
from headgate.lake.storage.files import Storage
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from tests.support.declared import files_of, source_of
from tests.unit.insight.ledger.conftest import DECLARATION

_SLEEP = time.sleep
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


class Place:
    """A landing folder, and a clock that moves while the source sleeps. ``producer`` runs then."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = folder / "tiny.yml"
        file.write_text(DECLARATION)
        self.pipeline = load(file)
        self.landing = Path(files_of(self.pipeline).path)
        self.landing.mkdir()
        self.now, self.thread = 0.0, threading.current_thread()
        self.check: Callable[[], None] = lambda: None
        self.producer: Callable[[], None] = lambda: None
        monkeypatch.setattr("headgate.flow.sources.files.micro_batches.time.sleep", self._sleep)
        self.source = self._open(folder)

    def _open(self, folder: Path) -> SourceLoop:
        kind, source = Files(), source_of(self.pipeline)
        place = cast(Any, _Deployed(Storage(str(folder / "lake")), source))
        (shape,) = kind.tables(place)
        shape.create("files")
        shape.table.fence(1)
        context = SourceContext(
            *(cast(Any, None), "tiny", self.pipeline.file, source),
            tables={"files": shape.table},
            epoch=1,
            clock=self.clock,
            monotonic=lambda: self.now,
            check=self._check,
        )
        loop = SourceLoop(
            *(source.name, partial(kind.micro_batches, context), _Bronze()),
            *(self.clock, lambda: self.now),
            limit=timedelta(),
        )
        loop.begin()
        return loop

    @property
    def files(self) -> FilesMicroBatches:
        return cast(FilesMicroBatches, self.source.source)

    def poll(self, *, final: bool) -> None:
        self.files.poll(BronzePayload(), final=final)

    def clock(self) -> datetime:
        return NOON + timedelta(seconds=self.now)

    def write(self, name: str) -> None:
        """Write a file, or write it again, now."""
        (self.landing / name).write_text("{}\n")
        at = self.clock().timestamp()
        os.utime(self.landing / name, (at, at))

    def recorded(self) -> list[str]:
        return [file.path for file in self.files.log.files]

    def _check(self) -> None:
        self.check()

    def _sleep(self, seconds: float) -> None:
        """Moves the clock for the test's own thread; threads that other tests left really sleep."""
        if threading.current_thread() is not self.thread:
            _SLEEP(seconds)
            return
        self.now += seconds
        self.producer()


class _Deployed:
    def __init__(self, storage: Storage, source: object) -> None:
        self.storage, self.source, self.pipeline = storage, source, "tiny"


class _Bronze:
    lock: AbstractContextManager[object] = nullcontext()

    def refresh(self) -> State:
        return State(BronzePayload())

    def position(self, state: State) -> BronzePayload:
        return BronzePayload.of(state)

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        raise AssertionError("no batch is read here")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_it_waits_for_the_files_that_are_settling(place: Place) -> None:
    place.write("a.json")
    place.poll(final=True)
    assert place.recorded() == ["a.json"]
    assert 2 <= place.now < 2.6


def test_a_producer_that_never_pauses_keeps_no_run_from_its_batches(place: Place) -> None:
    """A file appears at each listing, and one is written again and again."""

    def produce() -> None:
        place.write(f"{place.now:06.2f}.json")
        place.write("grows.json")

    place.producer = produce
    produce()
    place.poll(final=True)
    assert place.now < 3
    assert place.recorded()[0] == "000.00.json"
    assert "grows.json" not in place.recorded(), "the next run reads it"


def test_a_stop_ends_the_wait(place: Place) -> None:
    def stop() -> None:
        raise StopRequested

    place.write("a.json")
    place.check = stop
    with pytest.raises(StopRequested):
        place.poll(final=True)
    assert place.now == 0


def test_a_landing_folder_that_vanishes_is_away_until_it_is_back(place: Place) -> None:
    """Also before its first file: it may never have been there, if another source began the run."""
    away = place.landing.with_name("away")
    said = f"there is no landing folder {place.landing}"
    for recorded, remedy in ((["a.json"], "create it: mkdir"), (["a.json", "b.json"], "put it")):
        place.landing.rename(away)
        with pytest.raises(LandingAwayError, match=said) as found:
            place.poll(final=False)
        assert found.value.remedy.startswith(remedy)
        away.rename(place.landing)
        place.write(recorded[-1])
        place.poll(final=True)
        assert place.recorded() == recorded


def test_a_mount_point_without_its_disk_is_away_and_a_missing_file_is_not(place: Place) -> None:
    """A disk that is not mounted leaves an empty folder."""
    for name in ("a.json", "b.json"):
        place.write(name)
    place.poll(final=True)
    disk = place.landing.rename(place.landing.with_name("disk"))
    place.landing.mkdir()
    place.poll(final=False)
    with pytest.raises(LandingAwayError, match="is empty, and 2 of its files are recorded and not"):
        place.source.ingest()
    place.landing.rmdir()
    disk.rename(place.landing)
    (place.landing / "a.json").unlink()
    with pytest.raises(FileChangedError, match="vanished"):
        place.source.ingest()


def test_a_disk_that_comes_back_while_its_files_are_looked_for_changes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("a.json")
    place.poll(final=True)
    disk = place.landing.rename(place.landing.with_name("disk"))
    place.landing.mkdir()
    require_mounted = FilesIntake.require_mounted

    def mount(intake: FilesIntake, unread: int) -> None:
        place.landing.rmdir()
        disk.rename(place.landing)
        require_mounted(intake, unread)

    monkeypatch.setattr(FilesIntake, "require_mounted", mount)
    assert [file.path for file in place.files._readable(FilesRange(0, 1))] == ["a.json"]


def test_a_disk_that_is_no_longer_mounted_is_away_although_all_files_were_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty folder is right if it is on the same disk: its files may be removed after they were
    read."""
    mounts = {str(place.landing)}
    monkeypatch.setattr(os.path, "ismount", mounts.__contains__)
    place.write("a.json")
    place.poll(final=True)
    (place.landing / "a.json").unlink()
    place.poll(final=False)
    mounts.clear()
    for _ in range(2):
        with pytest.raises(LandingAwayError, match="is empty, and its disk is not mounted"):
            place.poll(final=False)
    mounts.add(str(place.landing))
    place.poll(final=False)
    mounts.clear()
    place.write("b.json")
    place.poll(final=True)
    assert place.recorded() == ["a.json", "b.json"], "another folder is meant from now on"


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.EIO, LandingAwayError), (errno.ESTALE, LandingAwayError), (errno.EACCES, LandingError)],
)
def test_a_folder_that_cannot_be_listed(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def fail(_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(error, match=os.strerror(number)) as raised:
        place.poll(final=False)
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("folder", "remedy"),
    [
        ("/mnt/in a", "see whether it is there: ls '/mnt/in a'"),
        ("s3://shop/in", "see whether the object store answers"),
    ],
)
def test_an_outage_names_what_to_look_at(folder: str, remedy: str) -> None:
    with pytest.raises(LandingAwayError) as away, reaching(folder):
        raise OSError("AWS Error SLOW_DOWN during GetObject operation: curlCode: 7, no answer")
    assert away.value.remedy == remedy


def test_a_name_that_is_not_utf8_is_reported_and_keeps_no_other_file_waiting(place: Place) -> None:
    for name in (b"bad\xff.json", b".draft\xff", b"bad\xff folder/a.json"):
        path = Path(os.fsdecode(os.fsencode(place.landing) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n")
    place.write("a.json")
    place.poll(final=True)
    assert place.recorded() == ["a.json"]
    assert place.files.remark == (
        f"{place.landing} has names that are not UTF-8, so no log can hold them, and they are not "
        r"read: bad\xff folder/, bad\xff.json; rename them"
    )
    path.parent.rename(place.landing / "good")
    Path(os.fsdecode(os.fsencode(place.landing) + b"/bad\xff.json")).unlink()
    place.now += 10
    place.poll(final=True)
    assert place.recorded() == ["a.json", "good/a.json"]
    assert place.files.remark is None


def test_a_file_is_recorded_once_however_many_names_lead_to_it(place: Place) -> None:
    place.write("z.json")
    place.poll(final=True)
    for name, target in (("loop", "."), ("a.json", "z.json"), ("up", "..")):
        (place.landing / name).symlink_to(target)
    os.link(place.landing / "z.json", place.landing / "b.json")
    place.now += 10
    place.poll(final=True)
    assert place.recorded() == ["z.json"]
