"""The development broker, as the command line and as later tests use it, with a real Kafka."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from headgate.cli.main import answer
from headgate.setup.broker import client
from headgate.setup.broker.client import (
    BrokerUnreachableError,
    FolderInUseError,
    NotUpError,
    PortTakenError,
)
from headgate.setup.broker.running import Broker, running, start
from tests.support.broker import PATIENCE, Sent, consume_all, create_topic, produce
from tests.support.own_broker import BrokerWithLogin, kill, restart, start_with_login
from tests.support.rounds import in_full
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

Headgate = Callable[..., tuple[int, str, str]]

KAFKA = (sys.executable, "-m", "headgate.cli", "kafka")
USERS = {"ann": "pass, wo=rd"}
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerWithLogin]:
    """A broker that tests of this module may kill. Its folder has special characters in its
    name."""
    folder = tmp_path_factory.mktemp("own") / "the broker, ü"
    with start_with_login(folder, USERS) as started:
        yield started


@pytest.fixture
def headgate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Headgate:
    """Runs a verb of `kafka` with its own root. Returns the exit code, stdout and stderr."""

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = answer(["kafka", *arguments, "--root", str(tmp_path)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def last_object(done: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = done
    assert code == 0, err
    document: dict[str, Any] = json.loads(out.splitlines()[-1])
    return document


def test_a_record_comes_back_with_all_it_was_sent_with(broker: Broker) -> None:
    topic = create_topic(broker, partitions=3)
    headers = (("trace", b"\x00\xff"), ("trace", None))
    sent = Sent(b"one", key=b"k", partition=2, at=AT, headers=headers)
    assert produce(broker, topic, [sent, Sent(None, partition=0)]) == [(2, 0), (0, 0)]
    tombstone, record = consume_all(broker, topic)
    assert (record.partition, record.offset, record.key, record.value) == (2, 0, b"k", b"one")
    assert (record.timestamp, record.headers) == (AT, headers)
    assert tombstone.value is None


def test_only_committed_records_are_read(broker: Broker) -> None:
    topic = create_topic(broker)
    produce(broker, topic, [b"a", b"b"], transaction="commit")
    produce(broker, topic, [b"c"], transaction="abort")

    def values() -> list[bytes | None]:
        return [each.value for each in consume_all(broker, topic)]

    # Kafka answers before readers see a commit.
    wait_until(lambda: values() == [b"a", b"b"], "the first commit is not visible", 30)
    produce(broker, topic, [b"d"], transaction="commit")
    wait_until(lambda: values() == [b"a", b"b", b"d"], "the last commit is not visible", 30)
    assert consume_all(broker, topic)[-1].offset == 5


def test_a_topic_may_be_configured(broker: Broker) -> None:
    topic = create_topic(broker, message_timestamp_type="LogAppendTime")
    produce(broker, topic, [Sent(b"a", at=AT)])
    (record,) = consume_all(broker, topic)
    assert record.timestamp is not None
    assert record.timestamp > AT + timedelta(days=1)


def test_a_user_with_the_right_password_gets_in_and_no_other(own: BrokerWithLogin) -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    ann = {**login, "sasl_username": "ann", "sasl_password": USERS["ann"]}
    assert client.metadata(own.sasl_servers, client.ANSWERS_WITHIN, **ann).brokers
    wrong = {"sasl_username": "bob"}, {"sasl_password": "wrong"}
    with ThreadPoolExecutor(2) as pool:  # each waits for its whole timeout
        tried = [
            pool.submit(client.metadata, own.sasl_servers, 10.0, **ann | each) for each in wrong
        ]
    for each in tried:
        with pytest.raises(BrokerUnreachableError, match=r"(?i)authentication failed"):
            each.result()


def test_a_killed_broker_starts_again_on_its_port_with_its_records(own: Broker) -> None:
    topic = create_topic(own)
    produce(own, topic, [b"%d" % i for i in range(1000)])
    before, port = own.pid, own.servers
    kill(own)
    assert not own.is_alive
    assert before is not None
    assert not psutil.pid_exists(before)
    with pytest.raises(BrokerUnreachableError, match=port):
        client.metadata(own.servers, timeout=0.5)
    restart(own)
    assert own.servers == port
    assert own.pid not in (None, before)
    assert [r.value for r in consume_all(own, topic)] == [b"%d" % i for i in range(1000)]
    assert produce(own, topic, [b"more"]) == [(0, 1000)]


def test_a_folder_has_one_broker(own: Broker) -> None:
    with pytest.raises(FolderInUseError, match=f"process {own.pid} ") as raised:
        start(own.folder)
    assert raised.value.pid == own.pid


def test_a_taken_port_is_named(own: Broker, tmp_path: Path) -> None:
    port = own.servers.rpartition(":")[2]
    with pytest.raises(PortTakenError, match=port):
        start(tmp_path, int(port))
    assert running(tmp_path) is None


def test_a_broker_that_does_not_come_up_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotUpError, match=r"num\.io\.threads") as raised:
        start(tmp_path, properties={"num.io.threads": "many"})
    assert str(tmp_path / "logs") in raised.value.remedy
    assert running(tmp_path) is None


def test_up_produce_consume_down(tmp_path: Path, headgate: Headgate) -> None:
    owner_is_killed(tmp_path, headgate)
    # In another process: the broker has to outlive the process that started it.
    done = subprocess.run(
        [*KAFKA, "up", "--port", "0", "--root", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    up = last_object((done.returncode, done.stdout, done.stderr))
    jvm = psutil.Process(up["pid"])
    try:
        assert "kept" in headgate("topics")[1]
        assert headgate("topics", "--delete", "kept")[0] == 0
        _use(headgate, up)
    finally:
        _, said, _ = headgate("down")
    assert f"{up['servers']} has ended" in said
    jvm.wait(PATIENCE)  # an ended process keeps its pid until its parent waits for it
    assert "no broker runs" in headgate("down")[1]


def _use(headgate: Headgate, up: dict[str, Any]) -> None:
    assert last_object(headgate("up", "--json")) == {**up, "already": True}
    code, _, err = headgate("up", "--port", "1")
    assert (code, f"a broker runs already at {up['servers']}" in err) == (6, True)
    made = last_object(headgate("topics", "--create", "bids", "--partitions", "2", "--json"))
    empty = {"topic": "bids", "earliest": 0, "latest": 0}
    assert made["partitions"] == [{**empty, "partition": 0}, {**empty, "partition": 1}]
    lines = "".join(f'{{"id": "b{i}", "auction": {i % 3}}}\n' for i in range(30))
    sent = last_object(headgate("produce", "bids", "--key", "auction", "--json", stdin=lines))
    assert sent["delivered"] == sum(p["delivered"] for p in sent["partitions"]) == 30
    records = [json.loads(line) for line in headgate("consume", "bids")[1].splitlines()]
    assert sorted(r["value"] for r in records) == sorted(lines.splitlines())
    assert all(r["key"] == str(json.loads(r["value"])["auction"]) for r in records)
    assert len({(r["key"], r["partition"]) for r in records}) == 3
    few = headgate("consume", "bids", "--from", "5", "--max", "2", "--json")
    assert [json.loads(line)["offset"] for line in few[1].splitlines()[:2]] == [5, 6]
    assert last_object(few) == {"schema": 1, "topic": "bids", "records": 2}
    assert headgate("consume", "bids", "--from", "latest") == (0, "", "")
    code, out, err = headgate("consume", "bid")
    assert (code, out) == (1, "")
    assert 'no topic bid (did you mean "bids"?)' in err
    assert last_object(headgate("topics", "--delete", "bids", "--json"))["partitions"] == []


def foreground(root: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
    """A broker whose owner is another process, and its JVM."""
    command = [*KAFKA, "up", "--foreground", "--port", "0", "--root", str(root), "--json"]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    told = json.loads(owner.stdout.readline())
    return owner, psutil.Process(told["pid"])


def owner_is_killed(root: Path, headgate: Headgate) -> None:
    """Kill the owner of a broker: the JVM ends, and the topics are kept."""
    owner, jvm = foreground(root)
    guard = jvm.parent()
    assert guard is not None
    last_object(headgate("topics", "--create", "kept", "--json"))
    owner.kill()
    owner.wait()
    wait_until(lambda: not jvm.is_running(), "the JVM is still there", PATIENCE)
    wait_until(lambda: not guard.is_running(), "the guard is still there", PATIENCE)


@in_full
def test_a_broker_in_the_foreground_is_taken_down(tmp_path: Path, headgate: Headgate) -> None:
    """A short run tests this in tests/unit/cli/test_kafka.py."""
    owner, _ = foreground(tmp_path)
    assert headgate("down")[0] == 0
    assert owner.wait(PATIENCE) == 0


def test_a_follower_sees_what_comes_and_ends_with_ctrl_c(broker: Broker) -> None:
    topic = create_topic(broker)
    produce(broker, topic, [b"old"])
    command = [*KAFKA, "consume", topic, "--follow", "--servers", broker.servers]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["value"] == "old"
    produce(broker, topic, [b"new"])
    assert json.loads(follower.stdout.readline())["value"] == "new"
    os.kill(follower.pid, signal.SIGINT)
    assert follower.wait(PATIENCE) == 0
