"""Starting and stopping processes, with processes that do nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.control.driver_requests import paused_since, stop_asked, stop_requested
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from headgate.machine.process_tree.members import started
from headgate.supervision import local
from headgate.supervision.job_state import JobState
from headgate.supervision.local import NotAliveError, kill, launch, pause, stop, stop_now
from tests.unit.supervision.conftest import NOW, lease, report


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def owner_of(process: subprocess.Popen[bytes]) -> Owner:
    here = Owner.here()
    return Owner(process.pid, here.host, started(psutil.Process(process.pid)))


def now() -> datetime:
    return datetime.now(UTC)


class Clock:
    """A clock that moves only during a wait."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds


def test_stop_asks_and_waits_until_released(layout: Layout) -> None:
    lease(layout, Owner.here(), renewed=now())
    clock = Clock()

    def wait(seconds: float) -> None:
        clock.wait(seconds)
        if clock.time > 2:
            assert stop_requested(layout, 1)
            lease(layout, Owner.here(), released=True)

    assert [job.job for job in stop(layout, clock=clock, wait=wait)] == ["fused"]


def test_stop_asks_again_for_a_job_that_was_still_starting(layout: Layout) -> None:
    """A driver obeys only requests that are made after it takes its lease."""
    lease(layout, Owner.here(), renewed=now())
    clock = Clock()

    def wait(seconds: float) -> None:
        clock.wait(seconds)
        is_asked = stop_requested(layout, 2)
        lease(layout, Owner.here(), epoch=2, renewed=now(), released=is_asked)

    stop(layout, clock=clock, wait=wait)
    assert clock.time >= local.ASK_AGAIN


def test_stop_gives_up_in_time_and_says_what_to_do(layout: Layout) -> None:
    lease(layout, Owner.here(), renewed=now())
    clock = Clock()
    with pytest.raises(NotAliveError, match="has not ended in 10 s") as raised:
        stop(layout, timeout=10, clock=clock, wait=clock.wait)
    assert "--now" in raised.value.remedy


def test_what_is_silent_on_another_machine_is_not_waited_for(layout: Layout) -> None:
    """Its container may be gone. The next driver takes over from it, as it does without a stop."""
    lease(layout, Owner(1, "another-host", 0.0), renewed=now() - timedelta(minutes=1))
    clock = Clock()
    assert [job.owner.host for job in stop(layout, clock=clock, wait=clock.wait)] == [
        "another-host"
    ]
    assert clock.time > 30
    assert stop_requested(layout, 1)


def test_a_clock_of_another_machine_that_is_behind_ends_no_wait(layout: Layout) -> None:
    clock, owner = Clock(), Owner(1, "another-host", 0.0)

    def wait(seconds: float) -> None:
        clock.wait(seconds)
        lease(layout, owner, renewed=NOW + timedelta(seconds=clock.time))

    lease(layout, owner, renewed=NOW)
    with pytest.raises(NotAliveError, match="has not ended in 100 s"):
        stop(layout, timeout=100, clock=clock, wait=wait)


def test_a_stop_of_what_does_not_run_holds(layout: Layout) -> None:
    """A supervisor may be about to start it. A kill is not a stop request: supervisors kill,
    too."""
    lease(layout, Owner.here(), released=True)
    assert kill(layout) == ()
    assert stop_asked(layout) is None
    assert stop(layout) == ()
    assert stop_asked(layout) is not None


def test_a_stop_under_a_root_without_tables_leaves_nothing(layout: Layout, tmp_path: Path) -> None:
    assert stop(layout) == ()
    assert stop_now(layout) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_stop_at_once_is_asked_for_before_the_kill(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a supervisor could see a dead driver that no one has asked to stop."""
    lease(layout, Owner.here(), released=True)

    def killed(_: Layout) -> tuple[JobState, ...]:
        assert stop_asked(layout) is not None
        return ()

    monkeypatch.setattr(local, "kill", killed)
    assert stop_now(layout) == ()


def test_a_stop_at_once_kills_also_on_a_full_disk(
    layout: Layout, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Layout) -> None:
        raise OSError(28, "No space left on device")

    lease(layout, owner_of(sleeper), renewed=now())
    monkeypatch.setattr(local, "request_stop", full)
    with pytest.raises(OSError, match="No space"):
        stop_now(layout)
    assert not psutil.pid_exists(sleeper.pid)


def test_kill_ends_the_owner(layout: Layout, sleeper: subprocess.Popen[bytes]) -> None:
    lease(layout, owner_of(sleeper), renewed=now())
    assert [job.owner.pid for job in kill(layout)] == [sleeper.pid]
    assert not psutil.pid_exists(sleeper.pid)


def test_kill_spares_a_process_that_inherited_the_pid(
    layout: Layout, sleeper: subprocess.Popen[bytes]
) -> None:
    real = owner_of(sleeper)
    lease(layout, Owner(real.pid, real.host, real.started - 3600), renewed=now())
    kill(layout)
    assert sleeper.poll() is None


def test_kill_refuses_a_job_of_another_machine(layout: Layout) -> None:
    lease(layout, Owner(1, "another-host", 0.0), renewed=now())
    with pytest.raises(NotAliveError, match="another-host"):
        kill(layout)


def test_a_failed_start_is_reported_with_the_output_of_the_job(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys; print('no such luck', file=sys.stderr); sys.exit(6)"
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
    with pytest.raises(NotAliveError, match="no such luck") as refused:
        launch(layout, Path("tiny.yml"), "lake")
    assert refused.value.exit_code == 6
    file = Path("tiny.yml").absolute()
    assert refused.value.remedy.endswith(f"headgate logs {file} --root lake")
    assert last_failure(layout) is None


@pytest.mark.slow
def test_a_failed_start_that_needs_a_person_is_recorded(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the declaration cannot be read, the process does not even know its pipeline."""
    record_failure(layout, Failure(3, "of another start", "skip it", now()))
    script = "import sys; print('tiny.yml:2: sorces', file=sys.stderr); sys.exit(2)"
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
    with pytest.raises(NotAliveError, match="sorces"):
        launch(layout, Path("tiny.yml"), "lake")
    failure = last_failure(layout)
    assert failure is not None
    assert (failure.code, failure.reason) == (2, "tiny.yml:2: sorces")


def test_a_start_that_fails_says_what_the_job_has_recorded(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = now() + timedelta(minutes=1)
    record_failure(layout, Failure(3, "a file is gone", "headgate files skip", later))
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", "import sys; sys.exit(3)"))
    with pytest.raises(NotAliveError) as refused:
        launch(layout, Path("tiny.yml"), "lake")
    assert (refused.value.message, refused.value.remedy) == (
        "a file is gone",
        "headgate files skip",
    )


@pytest.mark.slow
def test_a_start_shows_the_stages_of_its_job_and_they_are_no_error(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    went_on, said = tmp_path / "went on", list[str]()
    script = f"""
import os, sys, time
print("… starting Spark", flush=True)
while not os.path.exists({str(went_on)!r}):
    time.sleep(0.05)
print("… opening tables")
sys.exit("no such luck")
"""
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))

    def say(stage: str) -> None:
        said.append(stage)
        went_on.touch()

    with pytest.raises(NotAliveError) as refused:
        launch(layout, Path("tiny.yml"), "lake", say=say)
    assert said[0] == "starting Spark"
    assert refused.value.message == "no such luck"


def test_a_driver_does_not_inherit_the_environment_of_airflow(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://me:hush@db")
    monkeypatch.setenv("_AIRFLOW_TOKEN", "hush")
    monkeypatch.setenv("BUCKET", "mine")
    said = "import os; print(sorted(k for k in os.environ if 'AIRFLOW' in k or k == 'BUCKET'))"
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", said))
    with pytest.raises(NotAliveError, match=r"\['BUCKET'\]"):
        launch(layout, Path("tiny.yml"), "lake")


@pytest.mark.slow
def test_a_start_that_takes_too_long_is_ended(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds no lease yet, so no command would find it, and it might still start later."""
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(local, "STARTS_WITHIN", 0.5)
    with pytest.raises(NotAliveError, match="was ended") as late:
        launch(layout, Path("tiny.yml"), "lake")
    assert not psutil.pid_exists(int(late.value.message.split()[1]))


@pytest.mark.slow
def test_a_job_that_lets_go_again_has_not_started(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last status of the previous job is still present, and the process takes a while to
    end."""
    report(layout, "fused", epoch=1, n=7)
    lease(layout, Owner.here(), released=True)
    script = f"""
import sys, time
from datetime import UTC, datetime, timedelta
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.control.ownership import LAYERS, lease_path
storage = Storage({layout.storage.uri()!r})
for path in map(lease_path, LAYERS):
    content = read_document(storage, path)
    now = datetime.now(UTC).isoformat()
    write_document(storage, path, content | {{"since": now, "epoch": 2}})
time.sleep(1)
sys.exit("another declaration")
"""
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
    with pytest.raises(NotAliveError, match="another declaration"):
        launch(layout, Path("tiny.yml"), "lake")


def test_a_pause_is_one_when_the_batch_that_ran_has_ended(layout: Layout) -> None:
    lease(layout, Owner.here(), renewed=now())
    report(layout, "fused", epoch=1, n=1)
    clock = Clock()

    def wait(seconds: float) -> None:
        clock.wait(seconds)
        if clock.time > 2:
            report(layout, "fused", epoch=1, n=2, paused=paused_since(layout))

    assert pause(layout, clock=clock, wait=wait) == paused_since(layout)
    assert clock.time > 2


def test_only_the_job_of_bronze_is_waited_for(layout: Layout) -> None:
    lease(layout, Owner.here(), renewed=now(), layers=("silver",), epoch=1)
    lease(layout, Owner.here(), renewed=now(), layers=("gold",), epoch=2)
    clock = Clock()
    pause(layout, timeout=10, clock=clock, wait=clock.wait)
    assert clock.time == 0


def test_a_pause_that_is_not_heeded_says_so_and_stands(layout: Layout) -> None:
    lease(layout, Owner.here(), renewed=now())
    clock = Clock()
    with pytest.raises(NotAliveError, match="has not paused in 10 s"):
        pause(layout, timeout=10, clock=clock, wait=clock.wait)
    assert paused_since(layout) is not None


def test_a_stage_that_lasts_is_relayed_without_how_long(tmp_path: Path) -> None:
    """The command that shows the stage counts the seconds itself."""
    log, said = tmp_path / "run.log", list[str]()
    log.write_text("… opening tables\n… opening tables: 10 s\nother\n… batch 2: rea")
    read = local._relay(log, 0, said.append)
    assert said == ["opening tables", "opening tables"]
    log.write_text(log.read_text() + "ding\n")
    local._relay(log, read, said.append)
    assert said[-1] == "batch 2: reading"
