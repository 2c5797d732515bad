from __future__ import annotations

from pathlib import Path

import pytest

from headgate.setup.broker.client import (
    BrokerError,
    NotEnoughMemoryError,
    NotUpError,
    PortTakenError,
)
from headgate.setup.broker.running import failure, last_lines

BIND = (
    "ERROR org.apache.kafka.common.KafkaException: Socket server failed to bind to "
    "127.0.0.1:31999: Address already in use."
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


def explained(logs: Path, code: int | None, *said: str) -> BrokerError:
    (logs / "jvm.log").write_text("\n".join(said))
    return failure(logs.parent, 9092, code)


def test_the_port_that_is_taken_is_the_one_that_kafka_names(logs: Path) -> None:
    error = explained(logs, 1, "ERROR Exiting Kafka", BIND)
    assert isinstance(error, PortTakenError)
    assert error.port == 31999


def test_a_taken_port_without_a_name_is_the_brokers(logs: Path) -> None:
    error = explained(logs, 1, "java.net.BindException: Address already in use")
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
def test_a_lack_of_memory_is_reported(logs: Path, code: int, said: str) -> None:
    error = explained(logs, code, said)
    assert isinstance(error, NotEnoughMemoryError)
    assert said in error.message
    assert "512 MB" in error.message


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (137, "was killed, by somebody or by the system"),
        (76, "could not format its folder"),
        (None, "did not answer in time"),
        (1, "ended with exit code 1"),
    ],
)
def test_anything_else_ends_with_its_last_words_and_the_logs(
    logs: Path, code: int | None, how: str
) -> None:
    error = explained(logs, code, "first", "second")
    assert isinstance(error, NotUpError)
    assert how in error.message
    assert error.message.endswith(". Its last output:\n  first\n  second")
    assert str(logs) in error.remedy


def test_last_words_leave_out_chatter_frames_and_length(logs: Path) -> None:
    (logs / "jvm.log").write_text("java.Odd: why\n\n\tat java.lang.Thread.run\n")
    (logs / "server.log").write_text(
        "2026-11-21 INFO fine\n"
        "2026-11-21 ERROR bad\n"
        "java.io.IOException: disk\n"
        "\tat kafka.Kafka.main\n"
        "Caused by: worse\n" + "2026-11-21 WARN " + "x" * 1000 + "\n"
    )
    *words, long = last_lines(logs)
    assert words == [
        "java.Odd: why",
        "2026-11-21 ERROR bad",
        "java.io.IOException: disk",
        "Caused by: worse",
    ]
    assert len(long) == 300


def test_no_logs_are_no_words(tmp_path: Path) -> None:
    assert last_lines(tmp_path) == []
