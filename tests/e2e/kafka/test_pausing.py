"""A paused pipeline stays paused, and its password appears nowhere."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.broker import create_topic, produce
from tests.support.drivers import PATIENCE
from tests.support.own_broker import BrokerWithLogin
from tests.support.rounds import IN_FULL
from tests.support.said import Said, SaidHere
from tests.support.waiting import wait_until
from tests.support.watched import CANARY, LOGIN, declare, events

pytestmark = [
    pytest.mark.e2e,
    # A start leaves a child process running to which this process has no reference.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


def test_a_pause_outlives_a_restart_and_no_password_is_anywhere(
    kafka: BrokerWithLogin, tmp_path: Path
) -> None:
    topic, headgate = create_topic(kafka, 2), SaidHere(tmp_path)
    declare(tmp_path, kafka.sasl_servers, topic, options=LOGIN)
    produce(kafka, topic, events(0, 50))
    pid = headgate.json("start", "watched")["pid"]
    try:
        wait_for(headgate, 50)
        lines = family(pid)
        paused = headgate("pause", "watched")
        assert paused.returncode == 0, paused.stderr
        produce(kafka, topic, events(50, 30))
        behind(headgate, topic, 30)

        again = headgate("restart", "watched")
        assert again.returncode == 0, again.stderr
        assert "watched is PAUSED since" in again.stderr
        assert "headgate resume" in again.stderr
        behind(headgate, topic, 30)
        if IN_FULL:  # it costs one more start
            once = Said(tmp_path)("run", "watched", "--once")
            assert (once.returncode, read(headgate)) == (9, 50)
        assert "reads no new data, until:" in headgate("status", "watched").stdout
        job = headgate.json("status", "watched")["jobs"][0]
        lines += family(job["owner"]["pid"])
        log = headgate("logs", "watched").stdout
        assert "paused since" in log

        assert headgate("resume", "watched").returncode == 0
        wait_for(headgate, 80)
        wait_until(
            lambda: headgate.json("status", "watched")["state"] == "running",
            "it says that it is paused",
            PATIENCE,
            0.5,
        )
    finally:
        headgate("stop", "watched")
    ledger = headgate.json("ledger", "watched", "--by-id")
    assert (ledger["balanced"], ledger["by_id"]["holds"], ledger["gaps"]) == (True, True, [])
    assert not (tmp_path / "lake" / "watched" / "_headgate" / "files").exists()

    assert any("java" in line for line in lines)
    assert not any(CANARY in line for line in lines)
    assert CANARY not in headgate.everything
    assert_nowhere_under(tmp_path)


def family(pid: int) -> list[str]:
    """The command lines of a process and all below it."""
    process = psutil.Process(pid)
    lines = []
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # it has just ended
            lines.append(" ".join(member.cmdline()))
    return lines


def read(headgate: Said) -> int:
    return int(headgate.json("ledger", "watched")["read"])


def wait_for(headgate: Said, records: int) -> None:
    wait_until(lambda: read(headgate) == records, f"not all {records} were read", PATIENCE, 0.5)


def behind(headgate: Said, topic: str, records: int) -> None:
    """Wait until a paused pipeline is ``records`` behind, half of them on each of two partitions,
    and reports no trouble."""

    def is_behind() -> bool:
        status = headgate.json("status", "watched")
        (job,) = status["jobs"]
        assert status["state"] == job["state"] == "paused"
        assert job["trouble"] is None
        parts = (job["backlog"] or {}).get("partitions", {})
        each = {name: part["records"] for name, part in parts.items()}
        return each == {f"{topic}/0": records / 2, f"{topic}/1": records / 2}

    wait_until(is_behind, f"it is not {records} behind", PATIENCE, 0.5)


def assert_nowhere_under(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "spark-fused.log" for path in files)
    assert any(path.suffix == ".parquet" for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
