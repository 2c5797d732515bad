"""Which command lines are drivers, and of which pipelines."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.lake.control.ownership import lease_path
from headgate.lake.storage.layout import Layout
from headgate.supervision.discovery import driver_of, running_drivers, sightings
from tests.support.waiting import wait_until

HERE = Path("/here")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("python -m headgate.cli run a.yml --root /lake --apply", ("/here/a.yml", "/lake")),
        ("/venv/bin/python /venv/bin/headgate run --once shop", ("/here/shop", "/here/lake")),
        ("headgate run /there/a.yml --root=data", ("/there/a.yml", "/here/data")),
        ("headgate run --full-refresh gold.t a.yml", ("/here/a.yml", "/here/lake")),
        ("headgate run a.yml --layer bronze --root x", ("/here/a.yml", "/here/x")),
        ("headgate status a.yml", None),
        ("headgate run", None),
        ("vim headgate.yml run", None),
    ],
)
def test_a_command_line(line: str, found: tuple[str, str] | None) -> None:
    found_ = driver_of(line.split(), HERE)
    assert found_ == (found and (Path(found[0]), Path(found[1])))


def test_the_root_of_the_environment() -> None:
    assert driver_of(["headgate", "run", "a"], HERE, "/env") == (HERE / "a", Path("/env"))


def test_a_process_of_this_machine(tmp_path: Path) -> None:
    """The real process table has a process with the command line of a driver."""
    words = ["import time; time.sleep(60)", "headgate.cli", "run", "a.yml", "--root", "/r"]
    with subprocess.Popen([sys.executable, "-c", *words], cwd=tmp_path) as process:
        try:
            wait_until(
                lambda: any(
                    (d.pid, d.declared, d.root) == (process.pid, tmp_path / "a.yml", Path("/r"))
                    for d in running_drivers()
                ),
                "it is not found",
                10,
            )
        finally:
            process.kill()


def test_a_pipeline_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """It is damaged, or of another version of Headgate, and may belong to another person."""
    lease = Layout.of(str(tmp_path), "old").storage
    lease.write(lease_path("bronze"), b'{"schema": 1, "seal": "00"}')
    assert sightings((), [tmp_path], datetime.now(UTC)) == ()
