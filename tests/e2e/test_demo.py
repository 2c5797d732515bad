"""The demo, with files and with its own broker."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.drivers import PATIENCE
from tests.support.reaper import knowing
from tests.support.rounds import in_full
from tests.support.said import HEADGATE, Said
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("kafka", [[], ["--kafka"]])
def test_the_demo_accounts_for_all_and_leaves_nothing(tmp_path: Path, kafka: list[str]) -> None:
    root = tmp_path / "demo"
    document = Said(tmp_path).json("demo", *kafka, "--events", "1500", "--root", str(root))
    assert (document["read"], document["balanced"]) == (1500, True)
    assert document["root"] == str(root / "lake")
    assert document["pipeline"] == ("auctions_kafka" if kafka else "auctions")
    assert document["gold"]["bids_per_minute"]["rows"] > 0
    assert [r["rule"] for r in document["held"]["results"] if not r["met"]] == [
        "average_is_plausible"
    ]
    assert document["released"]["upto"] == document["held"]["upto"]
    wait_until(lambda: not knowing(root), f"left: {knowing(root)}", PATIENCE)


@in_full
def test_a_demo_that_is_interrupted_leaves_nothing_running(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    command = [*HEADGATE, "demo", "--kafka", "--events", "50000000", "--root", str(root)]
    demo = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        bronze = root / "lake" / "auctions_kafka" / "bronze" / "bids" / "data"
        wait_until(lambda: bronze.exists() or demo.poll() is not None, "it read nothing", PATIENCE)
        assert demo.poll() is None
        assert knowing(root)
        os.killpg(demo.pid, signal.SIGINT)
        demo.wait(PATIENCE)
    finally:
        demo.kill()
    wait_until(lambda: not knowing(root), "something is left", PATIENCE)
