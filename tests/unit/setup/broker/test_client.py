from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError

from headgate.machine.process_tree.ports import free_port
from headgate.setup.broker import client
from headgate.setup.broker.client import BrokerUnreachableError, NoSuchTopicError


@pytest.mark.slow
def test_an_address_without_a_broker_is_named_with_how_long_was_tried() -> None:
    servers, began = f"127.0.0.1:{free_port()}", time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=f"answered at {servers} within 2 s") as raised:
        client.metadata(servers, timeout=1.6)
    assert time.monotonic() - began < 10
    assert "refused" in raised.value.message
    assert "headgate kafka up" in raised.value.remedy
    assert raised.value.exit_code == 3


def test_the_reason_is_reported_before_all_brokers_down() -> None:
    login = KafkaError(KafkaError._AUTHENTICATION, "Authentication failed: wrong password")
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "0/2 brokers are down")
    assert client.reason([login, down]) == login.str()
    assert client.reason([down]) == down.str()
    assert client.reason([]) is None


@pytest.mark.slow
def test_the_library_says_nothing_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    admin = client.admin(f"127.0.0.1:{free_port()}")
    assert client.cluster_id(admin, timeout=0.3) is None
    assert capfd.readouterr() == ("", "")


def test_an_unknown_topic_names_the_nearest() -> None:
    error = NoSuchTopicError("here:9092", "bid", ["bids", "orders"])
    assert error.message == 'here:9092 has no topic bid (did you mean "bids"?)'
    assert "did you mean" not in NoSuchTopicError("here:9092", "zzz", ["bids"]).message
    assert "--create bid" in error.remedy
