"""A pipeline that reads Kafka, as a user types it: real processes, a real broker, a real Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from headgate.broker import topics
from headgate.broker.running import Broker, start
from tests.support.broker import Sent, create_topic, produce

pytestmark = pytest.mark.e2e

PATIENCE = 180.0  # seconds: a cold JVM on a busy machine
CANARY = "kettle-7391-umbrella"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEADGATE = (sys.executable, "-m", "headgate.cli")

DECLARATION = """
pipeline: watched
sources:
  events:
    kafka:
      servers: {servers}
      {which}: {topic}
      start: {start}
      unreachable_after: 2 s
{options}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, at: timestamp}}
silver:
  clean: {{from: events}}
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    measures: {{events: count(*)}}
    allowed_lateness: 10 s
"""
LOGIN = """
      options:
        security.protocol: SASL_PLAINTEXT
        sasl.mechanism: PLAIN
        sasl.jaas.config: org.apache.kafka.common.security.plain.PlainLoginModule
          required username="ann" password="${env:PASSWORD}";
"""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with start(tmp_path_factory.mktemp("kafka"), sasl_users={"ann": CANARY}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_DRIVER_MEMORY", "1g")
    monkeypatch.setenv("PASSWORD", CANARY)
    monkeypatch.delenv("HEADGATE_ROOT", raising=False)


class Said:
    """Runs commands in ``folder``; ``everything`` is all that they wrote."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.everything = ""

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*HEADGATE, *arguments],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.everything += done.stdout + done.stderr
        return done

    def json(self, *arguments: str) -> dict[str, Any]:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return document


def declare(folder: Path, servers: str, topic: str, name: str = "watched", **more: str) -> None:
    values = {"which": "topic", "start": "earliest", "options": "", **more}
    text = DECLARATION.format(servers=servers, topic=topic, **values)
    (folder / f"{name}.yml").write_text(text.replace("pipeline: watched", f"pipeline: {name}"))


def events(first: int, count: int, partition: int | None = None) -> list[Sent]:
    return [
        Sent(
            json.dumps({"id": f"e{i}", "at": (START + timedelta(seconds=i)).isoformat()}).encode(),
            partition=i % 2 if partition is None else partition,
        )
        for i in range(first, first + count)
    ]


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


def family(pid: int) -> list[str]:
    """The command lines of a process and all below it."""
    process = psutil.Process(pid)
    lines = []
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # it has just ended
            lines.append(" ".join(member.cmdline()))
    return lines


def test_a_pause_outlives_a_restart_and_no_password_is_anywhere(
    kafka: Broker, tmp_path: Path
) -> None:
    topic, headgate = create_topic(kafka, 2), Said(tmp_path)
    assert kafka.sasl_servers is not None
    declare(tmp_path, kafka.sasl_servers, topic, options=LOGIN)
    produce(kafka, topic, events(0, 50))
    pid = headgate.json("start", "watched")["pid"]
    try:
        wait_until(lambda: read(headgate) == 50, "the first events were not read")
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
        once = headgate("run", "watched", "--once")
        assert (once.returncode, read(headgate)) == (9, 50)
        assert "takes in nothing new, until:" in headgate("status", "watched").stdout
        job = headgate.json("status", "watched")["jobs"][0]
        lines += family(job["owner"]["pid"])
        log = headgate("logs", "watched").stdout
        assert "paused since" in log

        assert headgate("resume", "watched").returncode == 0
        wait_until(lambda: read(headgate) == 80, "it did not go on")
        assert headgate.json("status", "watched")["state"] == "running"
    finally:
        headgate("stop", "watched")
    ledger = headgate.json("ledger", "watched", "--by-id")
    assert (ledger["balanced"], ledger["by_id"]["holds"], ledger["gaps"]) == (True, True, [])
    assert not (tmp_path / "lake" / "watched" / "_headgate" / "files").exists()

    assert any("java" in line for line in lines)
    assert not any(CANARY in line for line in lines)
    assert CANARY not in headgate.everything
    assert_nowhere_under(tmp_path)


def read(headgate: Said) -> int:
    return int(headgate.json("ledger", "watched")["read"])


def behind(headgate: Said, topic: str, records: int) -> None:
    """Wait until a paused pipeline is so far behind, on both partitions, and not in trouble."""

    def is_behind() -> bool:
        status = headgate.json("status", "watched")
        (job,) = status["jobs"]
        assert status["state"] == job["state"] == "paused"
        assert job["trouble"] is None
        parts = (job["backlog"] or {}).get("partitions", {})
        each = {name: part["records"] for name, part in parts.items()}
        return each == {f"{topic}/0": records / 2, f"{topic}/1": records / 2}

    wait_until(is_behind, f"it is not {records} behind")


def assert_nowhere_under(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "spark-fused.log" for path in files)
    assert any(path.suffix == ".parquet" for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


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
    kafka: Broker, shell: tuple[Shell, Path]
) -> None:
    run, folder = shell
    topic = create_topic(kafka)
    assert kafka.sasl_servers is not None
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


def test_what_topics_have_lost_is_passed_over_only_when_told_to(
    kafka: Broker, tmp_path: Path
) -> None:
    headgate, both = Said(tmp_path), f"gaps-{uuid.uuid4().hex[:8]}"
    old, again = f"{both}-expired", f"{both}-made-again"
    for topic in (old, again):
        topics.create(kafka.servers, topic, 1, {})
        produce(kafka, topic, events(0, 10, partition=0))
    declare(tmp_path, kafka.servers, f"{both}.*", which="pattern")
    assert headgate.json("run", "watched", "--once")["read"] == 20

    produce(kafka, old, events(10, 10, partition=0))
    expire(kafka, old, 15)
    topics.delete(kafka.servers, again)
    topics.create(kafka.servers, again, 1, {})
    produce(kafka, again, events(20, 3, partition=0))
    refused = headgate("run", "watched", "--once")
    assert refused.returncode == 3
    assert f"{old}/0: offsets 10 to 14 (expired" in refused.stderr
    assert f"{again}/0: offsets 10 to the end (the topic was made anew)" in refused.stderr
    assert "--accept-gap" in refused.stderr

    went_on = headgate("run", "watched", "--once", "--accept-gap")
    assert went_on.returncode == 0, went_on.stderr
    lines = [line.split() for line in went_on.stdout.splitlines() if line.startswith(both)]
    assert [line[:4] for line in lines] == [
        [f"{old}/0", "10", "to", "14"],
        [f"{again}/0", "from", "10", "on"],
    ]
    ledger = headgate.json("ledger", "watched", "--by-id")
    assert (ledger["read"], ledger["balanced"], ledger["by_id"]["holds"]) == (28, True, True)
    assert [(gap["first"], gap["end"]) for gap in ledger["gaps"]] == [(10, 15), (10, None)]


def expire(kafka: Broker, topic: str, before: int) -> None:
    """What retention does, at once."""
    from confluent_kafka import TopicPartition

    from headgate.broker import client

    admin = client.admin(kafka.servers)
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)


def left_over(folder: Path) -> list[psutil.Process]:
    """Processes that know of a folder: by their command line or by where they are."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        told = [*(process.info["cmdline"] or ()), process.info["cwd"] or ""]
        if any(str(folder) in text for text in told):
            found.append(process)
    return found


def test_the_demo_with_a_broker_accounts_for_all_and_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    document = Said(tmp_path).json("demo", "--kafka", "--events", "6000", "--root", str(root))
    assert (document["read"], document["balanced"]) == (6000, True)
    assert document["pipeline"] == "auctions_kafka"
    assert document["gold"]["bids_per_minute"]["rows"] > 0
    wait_until(lambda: not left_over(root), f"left: {left_over(root)}")


def test_a_demo_that_is_interrupted_leaves_nothing_running(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    command = [*HEADGATE, "demo", "--kafka", "--events", "50000000", "--root", str(root)]
    demo = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        bronze = root / "auctions_kafka" / "bronze" / "bids" / "data"
        wait_until(lambda: bronze.exists() or demo.poll() is not None, "it read nothing")
        assert demo.poll() is None
        assert left_over(root)
        os.killpg(demo.pid, signal.SIGINT)
        demo.wait(PATIENCE)
    finally:
        demo.kill()
    wait_until(lambda: not left_over(root), "something is left")


def test_brokers_that_never_answer_are_seen_and_a_stop_is_heard(tmp_path: Path) -> None:
    said = Said(tmp_path)
    file = tmp_path / "watched.yml"
    declare(tmp_path, "127.0.0.1:1", "nothing")
    patient = file.read_text().replace("unreachable_after: 2 s", "unreachable_after: 10 minutes")
    file.write_text(patient)
    assert said("start", "watched").returncode == 0, said.everything
    wait_for(lambda: "no answer from the brokers 127.0.0.1:1" in said("status", "watched").stdout)
    (job,) = said.json("status", "watched")["jobs"]
    assert job["backlog"] is None
    began = time.monotonic()
    assert said("stop", "watched").returncode == 0, said.everything
    assert time.monotonic() - began < 60
    assert "ended by itself" not in said("status", "watched").stdout

    declare(tmp_path, "127.0.0.1:1", "nothing")
    said("start", "watched")
    wait_for(lambda: "ended by itself" in said("status", "watched").stdout)
    told = said("status", "watched")
    assert told.returncode == 7
    assert "no answer from the brokers 127.0.0.1:1; asked for" in told.stdout
    assert "headgate logs watched.yml" in told.stdout
    assert "headgate start watched.yml" in told.stdout


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.5)
