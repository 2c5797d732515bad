"""What a user is told if brokers refuse, lack a topic or an offset, or do not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker import create_topic
from tests.support.own_broker import BrokerWithLogin
from tests.support.rounds import IN_FULL, in_full
from tests.support.said import Said
from tests.support.shell import Shell
from tests.support.watched import CANARY, LOGIN, declare

pytestmark = [
    pytest.mark.e2e,
    # A start leaves a child process running to which this process has no reference.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


def test_what_goes_wrong_says_where_and_what_to_do(kafka: BrokerWithLogin, shell: Shell) -> None:
    run, folder = shell, shell.folder
    topic = create_topic(kafka)
    declare(folder, "127.0.0.1:1", topic, "nobody")
    declare(folder, kafka.servers, topic[:-1], "misspelt")
    declare(folder, kafka.servers, topic, "beyond", start="{0: 99}")
    wrong = LOGIN.replace("${env:PASSWORD}", "x${env:PASSWORD}")
    declare(folder, kafka.sasl_servers, topic, "stranger", options=wrong)
    declare(folder, kafka.sasl_servers, topic, "mute", options=LOGIN.replace("required", "needed"))
    expected = {
        "nobody": ("no answer from the brokers 127.0.0.1:1; asked for", "kafka topics --servers"),
        "misspelt": (f'has no topic {topic[:-1]} (did you mean "{topic}"?)', topic),
        "beyond": (f"start: {topic}/0 has no offset 99; it has 0 to 0", "change start"),
        "stranger": (f"{kafka.sasl_servers} refuse: Authentication failed", "password"),
        "mute": (f"{kafka.sasl_servers} refuse: Invalid login module control flag", "options"),
    }
    # Each case costs a start. A short run tests ``nobody`` in tests/kafka/test_start.py.
    in_short = {"misspelt", "stranger"}
    expected = {n: words for n, words in expected.items() if IN_FULL or n in in_short}
    for name, words in expected.items():
        code, said = run(f"run {name}.yml --once")
        assert code == 3, said
        assert all(word in said for word in words), said
        assert "Py4J" not in said
        assert CANARY not in said
    logs = [log for name in expected for log in (folder / "lake" / name).rglob("*.log")]
    assert len(logs) == len(expected)
    assert [log for log in logs if CANARY in log.read_text(errors="replace")] == []


@in_full
def test_a_start_leaves_a_driver_running_that_waits_for_its_brokers(tmp_path: Path) -> None:
    """A short run tests the outage in tests/recovery/test_outages.py, and the words of a start in
    tests/unit/cli/test_kafka_pipeline.py."""
    said = Said(tmp_path)
    declare(tmp_path, "127.0.0.1:1", "nothing")
    started = said("start", "watched")
    try:
        assert started.returncode == 0, started.stderr
        assert "no answer from the brokers 127.0.0.1:1, for " in started.stderr
        assert "headgate restart watched" in started.stderr
        (job,) = said.json("status", "watched")["jobs"]
        assert job["outage"]["what"] == "no answer from the brokers 127.0.0.1:1"
        assert job["backlog"] is None
    finally:
        stopped = said("stop", "watched")
    assert stopped.returncode == 0, stopped.stderr
    assert said.json("status", "watched")["state"] == "stopped"
    assert "it failed at" not in said("status", "watched").stdout
