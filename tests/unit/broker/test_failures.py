from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.errors import BrokerError, NotEnoughMemoryError, NotUpError, PortTakenError
from headgate.broker.failures import explain, last_words
from headgate.broker.properties import Settings

LOGS = Path("/broker/logs")
BIND = (
    "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:31999: "
    "Address already in use."
)


def explained(code: int | None, *said: str) -> BrokerError:
    return explain(code, said, Settings(9092, 9093), 512, LOGS, seconds=60.0)


def test_the_port_that_is_taken_is_the_one_that_kafka_names() -> None:
    error = explained(1, "ERROR Exiting Kafka", BIND)
    assert isinstance(error, PortTakenError)
    assert error.port == 31999


def test_a_taken_port_without_a_name_is_the_brokers() -> None:
    error = explained(1, "java.net.BindException: Address already in use")
    assert isinstance(error, PortTakenError)
    assert error.port == 9092


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "Could not reserve enough space for 4096000KB object heap"),
        (1, "There is insufficient memory for the Java Runtime Environment to continue."),
        (3, "Terminating due to java.lang.OutOfMemoryError: Java heap space"),
    ],
)
def test_a_lack_of_memory_is_told_as_that(code: int, said: str) -> None:
    error = explained(code, said)
    assert isinstance(error, NotEnoughMemoryError)
    assert said in error.message
    assert "512 MB" in error.message


def test_who_was_killed_is_told_as_that() -> None:
    assert "was killed, by somebody or by the system" in explained(137, "fine").message


def test_anything_else_ends_with_its_last_words_and_the_logs() -> None:
    error = explained(1, "first", "second")
    assert isinstance(error, NotUpError)
    assert error.message.endswith("exit code 1. It said last:\n  first\n  second")
    assert str(LOGS) in error.remedy


def test_silence_says_where_and_how_long() -> None:
    assert "did not answer at 127.0.0.1:9092 in 60 s" in explained(None).message


def test_last_words_leave_out_chatter_frames_and_length(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "jvm.log").write_text("java.Odd: why\n\n\tat java.lang.Thread.run\n")
    (tmp_path / "logs" / "server.log").write_text(
        "2026-11-21 INFO fine\n"
        "2026-11-21 ERROR bad\n"
        "java.io.IOException: disk\n"
        "\tat kafka.Kafka.main\n"
        "Caused by: worse\n" + "2026-11-21 WARN " + "x" * 1000 + "\n"
    )
    *words, long = last_words(tmp_path)
    assert words == [
        "java.Odd: why",
        "2026-11-21 ERROR bad",
        "java.io.IOException: disk",
        "Caused by: worse",
    ]
    assert len(long) == 300


def test_no_logs_are_no_words(tmp_path: Path) -> None:
    assert last_words(tmp_path) == []
