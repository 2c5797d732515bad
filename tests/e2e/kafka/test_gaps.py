"""Records that a topic has lost are skipped only if a user accepts the gap."""

from __future__ import annotations

import uuid

import pytest

from headgate.setup.broker import topics
from headgate.setup.broker.running import Broker
from tests.support.broker import produce
from tests.support.rounds import in_full
from tests.support.said import Said
from tests.support.shell import Shell
from tests.support.watched import declare, events

pytestmark = pytest.mark.e2e


@in_full
def test_what_topics_have_lost_is_passed_over_only_when_told_to(
    kafka: Broker, shell: Shell
) -> None:
    both = f"gaps-{uuid.uuid4().hex[:8]}"
    old, again = f"{both}-expired", f"{both}-made-again"
    for topic in (old, again):
        topics.create(kafka.servers, topic, 1, {})
        produce(kafka, topic, events(0, 10, partition=0))
    declare(shell.folder, kafka.servers, f"{both}.*", which="pattern")
    assert shell.json("run watched --once")["read"] == 20

    produce(kafka, old, events(10, 10, partition=0))
    expire(kafka, old, 15)
    topics.delete(kafka.servers, again)
    topics.create(kafka.servers, again, 1, {})
    produce(kafka, again, events(20, 3, partition=0))
    code, refused = shell("run watched --once")
    assert code == 3
    assert f"{old}/0: offsets 10 to 14 (expired" in refused
    assert f"{again}/0: offsets 10 to the end (the topic was created again)" in refused
    assert "--accept-gap" in refused

    # A process can read a stream only once. The refused run has read nothing.
    headgate = Said(shell.folder)
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
    """Delete the records before an offset, as retention does, but at once."""
    from confluent_kafka import TopicPartition

    from headgate.setup.broker import client

    admin = client.admin(kafka.servers)
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)
