"""SIGTERM for all processes of a driver, as supervisors, `timeout` and build servers send it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from headgate.lake.control.driver_reports import last_failure
from headgate.lake.storage.layout import Layout
from tests.oracle import derive
from tests.support.drivers import Running, begin
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import declare, rules
from tests.support.rounds import in_full
from tests.support.tables import differences, state

pytestmark = pytest.mark.recovery

GOLD = ("bands",)
FILES = 6


def wait_for(driver: Running, said: str) -> None:
    assert driver.process.stdout is not None
    assert any(said in line for line in driver.process.stdout), "it has ended"


@pytest.mark.parametrize("once", [True, pytest.param(False, marks=in_full)])
def test_a_driver_ends_after_its_batch_if_its_jvm_is_asked_to_end_as_well(
    tmp_path: Path, once: bool
) -> None:
    """A driver with ``--once`` reports what is unread. In short runs, tests/e2e/cli/test_cli.py
    covers a driver without it, which ends successfully."""
    landing, root = Landing(tmp_path / "landing"), tmp_path / "root"
    landing.write_all(split(readings(40, seed=3), FILES))
    pipeline = declare(tmp_path, landing.folder, gold=GOLD, max_files_per_batch=1)
    driver = begin("run", pipeline.file, "--root", root, *["--once"] * once)
    try:
        wait_for(driver, "batch 1: reading")
        os.killpg(driver.process.pid, signal.SIGTERM)
        ended = driver.end()
    finally:
        driver.kill()
    assert ended.code == (130 if once else 0), ended.output
    assert ("not done: " in ended.output) is once
    assert ("headgate run" in ended.last_line) is once
    assert "Traceback" not in ended.output
    assert last_failure(Layout.of(str(root), pipeline.name)) is None
    taken = state(root, "bronze/raw")["offsets"]["sequence"]
    assert taken < FILES
    read = [record for record in landing.records() if record.offset >> 36 < taken]
    assert differences(root, derive(read, rules(gold=GOLD))) == {}


@in_full  # short runs: the case above, and tests/unit/cli/test_running.py
@pytest.mark.parametrize("jobs", ["fused", "per_layer"])
def test_a_run_to_the_end_of_the_input_that_is_stopped_says_what_is_unread(
    tmp_path: Path, jobs: str
) -> None:
    landing, root = Landing(tmp_path / "landing"), tmp_path / "root"
    landing.write_all(split(readings(40, seed=3), 2))
    pipeline = declare(tmp_path, landing.folder, gold=GOLD)
    pipeline.file.write_text(f"jobs: {jobs}\n{pipeline.file.read_text()}")
    driver = begin("run", pipeline.file, "--root", root, "--once")
    try:
        wait_for(driver, "opening tables")
        driver.process.send_signal(signal.SIGTERM)
        ended = driver.end()
    finally:
        driver.kill()
    assert ended.code == 130, ended.output
    assert "not done: " in ended.output
    assert "headgate run" in ended.last_line
    assert last_failure(Layout.of(str(root), pipeline.name)) is None
