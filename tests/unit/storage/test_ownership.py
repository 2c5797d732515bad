"""Who owns a pipeline, even if the clock is corrected."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from headgate.process_tree.members import started
from headgate.storage.ownership import Owner


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
