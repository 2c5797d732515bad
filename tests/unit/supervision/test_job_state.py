"""How the states of jobs are derived from their documents."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from headgate.lake.control.driver_reports import Backlog
from headgate.lake.control.driver_requests import request_stop
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import overall_state, probe, state_of_lease
from tests.support.reported import at_b
from tests.unit.supervision.conftest import NOW, lease, report

GONE = Owner(pid=2**22 + 1, host=Owner.here().host, started=0.0)
FAR = Owner(pid=1, host="another-host", started=0.0)


def test_a_pipeline_that_never_ran_has_no_jobs(layout: Layout) -> None:
    assert probe(layout, NOW) == ()
    assert overall_state(()) == "stopped"


def test_one_driver_of_all_layers_is_one_job(layout: Layout) -> None:
    lease(layout, Owner.here(), epoch=4)
    report(layout, "fused", epoch=4, n=7)
    (job,) = probe(layout, NOW)
    assert (job.job, job.layers, job.state, job.epoch) == ("fused", LAYERS, "running", 4)
    assert job.sources == at_b(n=7, backlog=Backlog("files", 2, 1000), watermark=NOW)
    assert job.updated == NOW


def test_a_job_per_layer(layout: Layout) -> None:
    for epoch, layer in enumerate(LAYERS, start=1):
        lease(layout, Owner.here(), epoch=epoch, layers=(layer,))
    assert [job.job for job in probe(layout, NOW)] == list(LAYERS)


def test_the_status_of_an_earlier_run_is_ignored(layout: Layout) -> None:
    lease(layout, Owner.here(), epoch=5)
    report(layout, "fused", epoch=4, n=7)
    (job,) = probe(layout, NOW)
    assert job.sources == {}
    assert not job.is_open
    assert job.updated == NOW, "but gold is as old as it is"
    request_stop(layout)
    lease(layout, Owner.here(), epoch=5)
    report(layout, "fused", epoch=4, n=7)
    assert probe(layout, NOW)[0].updated is None, "a person has had it killed"
    report(layout, "fused", epoch=4, n=7, state="stopped")
    assert probe(layout, NOW)[0].updated is None, "after a rest nobody expects it to be level"


def test_the_last_status_of_a_stopped_job_stays_valid(layout: Layout) -> None:
    lease(layout, Owner.here(), epoch=5, released=True)
    report(layout, "fused", epoch=4, n=7)
    (job,) = probe(layout, NOW)
    assert (job.state, job.sources["b"].n, job.epoch, job.finished) == ("stopped", 7, 5, False)
    report(layout, "fused", epoch=4, n=7, state="finished")
    assert probe(layout, NOW)[0].finished


@pytest.mark.parametrize(
    ("owner", "silent", "state"),
    [
        (Owner.here(), timedelta(seconds=3), "running"),
        (Owner.here(), timedelta(seconds=31), "stale"),
        (GONE, timedelta(seconds=3), "dead"),
        (FAR, timedelta(seconds=3), "running"),
        (FAR, timedelta(seconds=31), "stale"),
    ],
)
def test_silence_and_death(layout: Layout, owner: Owner, silent: timedelta, state: str) -> None:
    lease(layout, owner, renewed=NOW - silent)
    (job,) = probe(layout, NOW)
    assert job.state == state


def test_what_was_asked_to_stop_and_is_gone_is_stopped(layout: Layout) -> None:
    """After `stop --now`, or a stop of a driver that had died."""
    lease(layout, GONE)
    request_stop(layout)
    assert probe(layout, NOW)[0].state == "stopped"
    lease(layout, FAR, renewed=NOW - timedelta(seconds=31))
    assert probe(layout, NOW)[0].state == "stale", "it may still live"


def test_a_process_that_inherited_the_pid_is_not_the_owner(layout: Layout) -> None:
    here = Owner.here()
    lease(layout, Owner(here.pid, here.host, here.started - 3600))
    (job,) = probe(layout, NOW)
    assert job.state == "dead"


def test_released_wins_over_all_else() -> None:
    assert state_of_lease(released=True, dead=True, silence=timedelta(days=1)) == "stopped"


def test_a_pause_is_a_state_of_jobs_that_are_alive() -> None:
    soon = timedelta(seconds=3)
    assert state_of_lease(released=False, dead=False, silence=soon, paused=True) == "paused"
    assert state_of_lease(released=False, dead=True, silence=soon, paused=True) == "dead"
    assert state_of_lease(released=True, dead=False, silence=soon, paused=True) == "stopped"
    assert (
        state_of_lease(released=False, dead=False, silence=timedelta(hours=1), paused=True)
        == "stale"
    )


def test_a_pipeline_is_paused_while_the_jobs_below_bronze_go_on(layout: Layout) -> None:
    for epoch, layer in enumerate(LAYERS, start=1):
        lease(layout, Owner.here(), epoch=epoch, layers=(layer,))
    report(layout, "bronze", epoch=1, n=1, paused=NOW)
    jobs = probe(layout, NOW)
    assert [job.state for job in jobs] == ["paused", "running", "running"]
    assert all(job.is_alive for job in jobs)
    assert overall_state(jobs) == "paused"
    assert jobs[0].paused == NOW


def test_the_job_that_needs_attention_decides(layout: Layout) -> None:
    lease(layout, Owner.here(), epoch=1, layers=("bronze",))
    lease(layout, GONE, epoch=2, layers=("silver",))
    lease(layout, Owner.here(), epoch=3, layers=("gold",), released=True)
    assert overall_state(probe(layout, NOW)) == "dead"


def test_supervision_loads_neither_spark_nor_the_driver() -> None:
    code = (
        "import sys, headgate.supervision.local\n"
        "sys.exit(any(m in sys.modules for m in ('pyspark', 'deltalake', 'headgate.driver')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
