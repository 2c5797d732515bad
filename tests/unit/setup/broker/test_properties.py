from __future__ import annotations

from headgate.setup.broker.running import LOG4J, server_properties


def parsed(**more: str) -> dict[str, str]:
    lines = server_properties(9092, 9093, more).splitlines()
    pairs = [line.partition("=") for line in lines]
    assert len({key for key, _, _ in pairs}) == len(lines)
    return {key: value for key, _, value in pairs}


def test_every_listener_is_on_the_loopback() -> None:
    found = parsed()
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_one_node_needs_one_copy_of_everything_and_makes_no_topic_by_itself() -> None:
    found = parsed()
    copies = [v for k, v in found.items() if k.endswith(("replication.factor", ".isr"))]
    copies.append(found["min.insync.replicas"])
    assert set(copies) == {"1"}
    assert len(copies) == 7
    assert found["auto.create.topics.enable"] == "false"
    assert found["group.initial.rebalance.delay.ms"] == "0"


def test_given_properties_win() -> None:
    found = parsed(listeners="others", new="1")
    assert (found["listeners"], found["new"]) == ("others", "1")


def test_the_log_does_not_grow_without_bound() -> None:
    settings = dict(line.split(" = ") for line in LOG4J.splitlines())
    assert settings["appender.file.policies.size.size"] == "10MB"
    assert settings["appender.file.strategy.max"] == "3"
