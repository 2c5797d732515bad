"""``headgate metrics`` as a person types it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from headgate.insight.metrics.alerts import rules
from tests.support.waiting import wait_until
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]
READ = 'headgate_read_records_total{pipeline="tiny",source="events"} 7.0'


def test_once_prints_the_metrics(lake: Lake, of_lake: OfLake, ask: Ask) -> None:
    code, out, err = ask("metrics", "--once", *of_lake)
    assert (code, err) == (0, "")
    assert READ in out.splitlines()


def test_without_a_name_those_that_have_run_are_found(
    lake: Lake, of_lake: OfLake, ask: Ask
) -> None:
    code, out, _ = ask("metrics", "--once", *of_lake[1:])
    assert code == 0
    assert set(re.findall(r'pipeline="(.*?)"', out)) == {"tiny"}


def test_one_that_has_never_run_is_served_if_it_is_named(
    lake: Lake, of_lake: OfLake, ask: Ask, tmp_path: Path
) -> None:
    code, out, _ = ask("metrics", "--once", of_lake[0], "--root", tmp_path / "nothing")
    assert code == 0
    assert 'headgate_condition{condition="absent",pipeline="tiny"} 1.0' in out


def test_alerts_are_printed(ask: Ask) -> None:
    assert ask("metrics", "--alerts") == (0, rules(), "")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "192.168.0.1"])
def test_other_machines_need_a_token(ask: Ask, of_lake: OfLake, host: str) -> None:
    code, _, err = ask("metrics", "--host", host, *of_lake)
    assert code == 2
    assert "--token-file" in err


def test_a_token_that_cannot_be_read_is_refused(ask: Ask, of_lake: OfLake) -> None:
    code, _, err = ask("metrics", "--token-file", "none", *of_lake)
    assert code == 2
    assert "cannot be read" in err


def test_a_port_that_is_taken_is_refused(ask: Ask, of_lake: OfLake) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, _, err = ask("metrics", "--port", str(port), *of_lake)
    assert code == 2
    assert f"--port {port + 1}" in err


def test_no_such_pipeline(ask: Ask) -> None:
    assert ask("metrics", "--once", "nothing")[0] == 2


@pytest.mark.slow
def test_it_serves_until_it_is_asked_to_end(lake: Lake, of_lake: OfLake, tmp_path: Path) -> None:
    log = tmp_path / "metrics.log"
    command = [sys.executable, "-m", "headgate.cli", "metrics", "--port", "0", *of_lake]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, env=os.environ.copy())
    try:
        wait_until(lambda: "/metrics" in log.read_text(), "it does not serve", 60)
        url = log.read_text().split()[-1]
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert READ in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
