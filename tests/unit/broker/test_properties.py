from __future__ import annotations

import pytest

from headgate.broker.properties import LOG4J, Settings, server_properties


def parsed(settings: Settings) -> dict[str, str]:
    """As Java reads it, but for escapes."""
    lines = server_properties(settings).splitlines()
    pairs = [line.partition("=") for line in lines]
    assert len({key for key, _, _ in pairs}) == len(lines)
    return {key: value for key, _, value in pairs}


def test_every_listener_is_on_the_loopback() -> None:
    found = parsed(Settings(9092, 9093, sasl_port=9094, sasl_users={"ann": "x"}))
    assert found["listeners"] == (
        "PLAINTEXT://127.0.0.1:9092,SASL://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093"
    )
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092,SASL://127.0.0.1:9094"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_a_broker_without_users_has_no_second_listener() -> None:
    settings = Settings(9092, 9093)
    assert (settings.servers, settings.sasl_servers) == ("127.0.0.1:9092", None)
    assert "sasl" not in server_properties(settings).lower()


def test_one_node_needs_one_copy_of_everything_and_makes_no_topic_by_itself() -> None:
    found = parsed(Settings(9092, 9093))
    copies = [v for k, v in found.items() if k.endswith(("replication.factor", ".isr"))]
    copies.append(found["min.insync.replicas"])
    assert set(copies) == {"1"}
    assert len(copies) == 7
    assert found["auto.create.topics.enable"] == "false"
    assert found["group.initial.rebalance.delay.ms"] == "0"


def test_given_properties_win() -> None:
    found = parsed(Settings(9092, 9093, properties={"log.retention.ms": "1000", "new": "1"}))
    assert (found["log.retention.ms"], found["new"]) == ("1000", "1")


def test_a_password_survives_both_ways_of_quoting() -> None:
    users = {"ann": 'p"a\\ß😀', "bob-2": "x y;=,"}
    found = parsed(Settings(9092, 9093, sasl_port=9094, sasl_users=users))
    assert found["listener.name.sasl.plain.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_ann="p\\\\"a\\\\\\\\\\u00df\\ud83d\\ude00" user_bob-2="x y;=,";'
    )


@pytest.mark.parametrize(
    "users", [{"a b": "x"}, {"": "x"}, {'a"': "x"}, {"ann": ""}, {"ann": "x\ny"}]
)
def test_users_that_a_file_cannot_hold_are_refused(users: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"name|password") as raised:
        server_properties(Settings(9092, 9093, sasl_port=9094, sasl_users=users))
    assert "x\ny" not in str(raised.value)


def test_the_log_does_not_grow_without_bound() -> None:
    settings = dict(line.split(" = ") for line in LOG4J.splitlines())
    assert settings["appender.file.policies.size.size"] == "10MB"
    assert settings["appender.file.strategy.max"] == "3"
