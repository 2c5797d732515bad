"""Who owns a pipeline, even if the clock is corrected."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import psutil
import pytest

from headgate.lake.control.ownership import EXPIRES_AFTER, Owner, in_force
from headgate.machine.process_tree.members import started


@pytest.fixture
def ended() -> Owner:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = Owner(process.pid, Owner.here().host, started(psutil.Process(process.pid)))
    process.communicate(b"\n")
    return owner


@pytest.mark.parametrize("seconds", [-86_400, -2, 2, 86_400])
def test_a_corrected_clock_makes_no_other_process_of_an_owner(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Linux computes the boot time from the present clock."""
    owner = Owner.here()
    corrected = psutil.boot_time() + seconds
    monkeypatch.setattr("psutil._psplatform.boot_time", lambda: corrected)
    assert psutil.Process().create_time() >= corrected
    assert owner.process() == psutil.Process()
    assert not owner.is_dead()


def test_who_ended_is_dead_and_who_is_elsewhere_only_silent(ended: Owner) -> None:
    assert ended.is_dead()
    assert not Owner(ended.pid, "another-host", ended.started).is_dead()
    here = Owner.here()
    assert Owner(here.pid, "another-host", here.started).process() is None
    assert Owner(here.pid, here.host, here.started - 60).process() is None, "its pid was used again"


NOW = datetime(2026, 3, 1, tzinfo=UTC)
DRIVER = {"epoch": 4, "released": True}
IN_FORCE = {
    # starts, released, is_gone, is_silent
    (False, False, False, False),
    (False, False, False, True),
    (True, False, False, False),
    (True, False, False, True),
    (True, False, True, False),
    (True, False, True, True),
    (True, True, False, False),
}
"""The operations that count, of all 16 combinations."""


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("is_silent", [False, True])
def test_an_operation_is_in_force_until_it_has_ended(
    ended: Owner, starts: bool, released: bool, is_gone: bool, is_silent: bool
) -> None:
    """One that starts a driver is in force until that driver has the lease; if it has released its
    own lease, only while its process is alive and has not been silent for long."""
    silence = EXPIRES_AFTER * 2 if is_silent else EXPIRES_AFTER
    lease = {
        "epoch": 5,
        "operation": "repair",
        "before": DRIVER,
        "starts": starts,
        "released": released,
        "renewed": (NOW - silence).isoformat(),
        **vars(ended if is_gone else Owner.here()),
    }
    counts = (starts, released, is_gone, is_silent) in IN_FORCE
    assert in_force(lease, NOW) == (lease | {"released": False} if counts else DRIVER)


def test_the_lease_of_a_driver_is_in_force_or_the_only_one(ended: Owner) -> None:
    assert in_force(DRIVER, NOW) == DRIVER
    over = {"operation": "repair", "before": None, "starts": False, "released": True}
    lease = {"epoch": 5, "renewed": NOW.isoformat(), **over, **vars(ended)}
    assert in_force(lease, NOW) == lease
