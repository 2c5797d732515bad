"""Brokers that refuse, know nothing or do not answer: what a user is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.broker import create_topic
from tests.support.drivers import PATIENCE
from tests.support.own_broker import BrokerWithLogin
from tests.support.waiting import wait_until
from tests.support.watched import CANARY, LOGIN, Said, declare

pytestmark = pytest.mark.e2e


_SERVE = """
import sys
from headgate.cli.main import answer
for line in sys.stdin:
    code = answer(line.split())
    for stream in (sys.stderr, sys.stdout):
        stream.flush()
    print(f"exit code {code}", flush=True)
"""


class Shell:
    """Command lines in one process, one after another: its JVM has to start only once."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )

    def __call__(self, line: str) -> tuple[int, str]:
        """The exit code, and what it said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        said: list[str] = []
        for answer in self._process.stdout:
            if answer.startswith("exit code "):
                return int(answer.split()[-1]), "".join(said)
            said.append(answer)
        raise AssertionError("".join(said))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, Path]]:
    folder = tmp_path_factory.mktemp("shell")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADGATE_DRIVER_MEMORY", "1g")
        patch.setenv("PASSWORD", CANARY)
        started = Shell(folder)
    yield started, folder
    started.end()


def test_what_goes_wrong_says_where_and_what_to_do(
    kafka: BrokerWithLogin, shell: tuple[Shell, Path]
) -> None:
    run, folder = shell
    topic = create_topic(kafka)
    declare(folder, "127.0.0.1:1", topic, "nobody")
    declare(folder, kafka.servers, topic[:-1], "misspelt")
    declare(folder, kafka.servers, topic, "beyond", start="{0: 99}")
    wrong = LOGIN.replace("${env:PASSWORD}", "x${env:PASSWORD}")
    declare(folder, kafka.sasl_servers, topic, "stranger", options=wrong)
    declare(folder, kafka.sasl_servers, topic, "mute", options=LOGIN.replace("required", "needed"))
    expected = {
        "nobody": ("no answer from the brokers 127.0.0.1:1; asked for", "unreachable_after"),
        "misspelt": (f'has no topic {topic[:-1]} (did you mean "{topic}"?)', topic),
        "beyond": (f"start: {topic}/0 has no offset 99; it has 0 to 0", "change start"),
        "stranger": (f"{kafka.sasl_servers} refuse: Authentication failed", "password"),
        "mute": (f"{kafka.sasl_servers} refuse: Invalid login module control flag", "options"),
    }
    for name, words in expected.items():
        code, said = run(f"run {name}.yml --once")
        assert code == 3, said
        assert all(word in said for word in words), said
        assert "Py4J" not in said
        assert CANARY not in said
    assert_not_in_logs(folder)


def assert_not_in_logs(folder: Path) -> None:
    logs = list(folder.rglob("*.log"))
    assert len(logs) == 5
    assert [log for log in logs if CANARY in log.read_text(errors="replace")] == []


def test_brokers_that_never_answer_are_seen_and_a_stop_is_heard(tmp_path: Path) -> None:
    said = Said(tmp_path)
    file = tmp_path / "watched.yml"
    declare(tmp_path, "127.0.0.1:1", "nothing")
    context = file.read_text().replace("unreachable_after: 2 s", "unreachable_after: 10 minutes")
    file.write_text(context)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(said, "start", "watched")
        wait_until(
            lambda: "no answer from the brokers 127.0.0.1:1" in said("status", "watched").stdout,
            "status does not say that nobody answers",
            PATIENCE,
        )
        (job,) = said.json("status", "watched")["jobs"]
        assert job["backlog"] is None
        refused = starting.result()
    assert refused.returncode == 3, said.everything
    assert "no answer from the brokers 127.0.0.1:1" in refused.stderr
    assert "headgate start watched" in refused.stderr
    assert said.json("status", "watched")["state"] == "stopped"
    assert "it failed at" not in said("status", "watched").stdout

    declare(tmp_path, "127.0.0.1:1", "nothing")
    refused = said("start", "watched")
    assert refused.returncode == 3
    assert "no answer from the brokers 127.0.0.1:1; asked for" in refused.stderr
    told = said("status", "watched")
    assert told.returncode == 3
    assert "no answer from the brokers 127.0.0.1:1; asked for" in told.stdout
    assert "headgate start watched\n" in told.stdout
