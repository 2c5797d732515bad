"""Records that are gone before they are read, and reads that fail: none is passed over silently."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from headgate.driver.source_loop import READ_ATTEMPTS
from headgate.flow.sources.errors import SourceError, SourceUnreachableError
from headgate.flow.sources.kafka.failures import OffsetsLostError, TopicMissingError
from tests.unit.flow.sources.kafka.conftest import Place, read_all


def test_a_topic_that_vanished_is_in_no_commit_forgotten(place: Place) -> None:
    """The listing without it reaches the stream's thread only through an error."""
    place.brokers.make("a", 5)
    place.brokers.make("b", 5)
    source = place.start(max_per_batch=2)
    assert source.ingest()
    place.brokers.remove("a")
    with pytest.raises(OffsetsLostError, match=r"a/0: offsets 1 to the end \(the topic is gone\)"):
        source.poll(final=False)
    with pytest.raises(OffsetsLostError):
        source.ingest()
    assert all(set(c.offsets) == {"0", str(1 << 16)} for c in place.bronze.commits)
    with pytest.raises(OffsetsLostError, match="a/0"):
        place.start()


def test_a_topic_made_anew_while_it_is_read_is_not_committed(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    place.reading.meanwhile = lambda: place.brokers.make("a", 900)
    with pytest.raises(OffsetsLostError, match=r"a/0: offsets 0 to the end \(.* created again\)"):
        source.ingest()
    assert len(place.bronze.commits) == 1


def test_a_new_topic_made_anew_in_its_first_batch_is_not_committed(place: Place) -> None:
    """Bronze has no position in it yet that could show the loss."""
    place.brokers.make("a", 5)
    source = place.start()
    read_all(source)
    place.brokers.make("b", 5)
    source.poll(final=False)
    place.reading.meanwhile = lambda: place.brokers.make("b", 900)
    with pytest.raises(OffsetsLostError, match="b: the topic was created again while its first"):
        source.ingest()
    assert str(1 << 16) not in place.bronze.payload.offsets


def test_a_topic_removed_while_it_is_read_is_not_committed(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start(topic="a")
    place.reading.meanwhile = lambda: place.brokers.remove("a")
    with pytest.raises(OffsetsLostError, match="the topic is gone"):
        source.ingest()
    assert len(place.bronze.commits) == 1


def test_a_gap_is_accepted_at_the_start_and_said(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    read_all(place.start())
    place.brokers.logs["a"] = [type(log)(9, 7) for log in place.brokers.logs["a"]]
    with pytest.raises(OffsetsLostError) as error:
        place.start()
    assert "a/0: offsets 5 to 6" in str(error.value)
    assert "a/1: offsets 5 to 6" in str(error.value)
    assert "headgate run PIPELINE --accept-gap" in error.value.remedy
    source = place.start(accept_gap=True)
    assert place.bronze.commits[-1].offsets == {"0": 7, "1": 7}
    assert [
        (g["topic"], g["partition"], g["first"], g["end"]) for g in place.bronze.payload.gaps
    ] == [
        ("a", 0, 5, 7),
        ("a", 1, 5, 7),
    ]
    read_all(source)
    assert place.bronze.payload.offsets == {"0": 9, "1": 9}
    place.start()
    assert len(place.bronze.payload.gaps) == 2


def test_a_log_that_was_cut_off_is_never_passed_over(place: Place) -> None:
    place.brokers.make("a", 5)
    read_all(place.start())
    place.brokers.logs["a"][0].end = 3
    with pytest.raises(OffsetsLostError, match="offsets 3 to 4") as error:
        place.start(accept_gap=True)
    assert "--root" in error.value.remedy


def test_a_removed_topic_is_a_loss_and_then_nothing_to_go_on_with(place: Place) -> None:
    place.brokers.make("a", 5)
    read_all(place.start(topic="a"))
    place.brokers.remove("a")
    with pytest.raises(OffsetsLostError, match="a/0: offsets 5 to the end"):
        place.start(topic="a")
    with pytest.raises(TopicMissingError):
        place.start(topic="a", accept_gap=True)
    place.brokers.make("a", 2)
    read_all(place.start(topic="a", accept_gap=True))
    assert place.bronze.payload.offsets == {str(1 << 16): 2}


def test_what_expired_shows_when_reading_fails(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()

    def expire() -> None:
        place.brokers.logs["a"][0].first = 2
        raise Py4JError("offset out of range")

    place.reading.meanwhile = expire
    with pytest.raises(OffsetsLostError, match="a/0: offsets 0 to 1 .expired"):
        source.ingest()


def test_a_read_that_fails_is_tried_again_and_not_for_ever(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    failures = 0

    def fail() -> None:
        nonlocal failures
        failures += 1
        place.reading.meanwhile = fail
        raise Py4JError("no reason")

    place.reading.meanwhile = fail
    with pytest.raises(Py4JError):
        source.ingest()
    assert failures == READ_ATTEMPTS


JAVA = """An error occurred while calling o7.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure
Caused by: org.apache.kafka.common.errors.{cause}: its message, with hunter22
	at org.apache.kafka.common.config.AbstractConfig.parse(AbstractConfig.java:1)
"""


@pytest.mark.parametrize(
    ("cause", "code", "told"),
    [
        ("TopicAuthorizationException", 3, "do not let this user read a"),
        ("SaslAuthenticationException", 3, "do not let this user read a"),
        ("CorruptRecordException", 3, "answer, but a cannot be read"),
        ("TimeoutException", None, "answer, but a cannot be read"),  # it is read again
        ("UnknownServerException", None, "answer, but a cannot be read"),
        ("RecordDeserializationException", 7, "answer, but a cannot be read"),  # by a new driver
    ],
)
def test_a_read_that_kafka_refuses_names_the_cause_and_nothing_else(
    place: Place, cause: str, code: int | None, told: str
) -> None:
    place.brokers.make("a", 5)
    source, failures = place.start(topic="a"), list[int]()

    def fail() -> None:
        failures.append(1)
        place.reading.meanwhile = fail
        raise Py4JError(JAVA.format(cause=cause))

    place.reading.meanwhile = fail
    with pytest.raises(SourceError) as error:
        source.ingest()
    assert error.value.message == f"the brokers localhost:1 {told} ({cause})"
    assert isinstance(error.value, SourceUnreachableError) is (code is None)
    assert error.value.exit_code == code or code is None
    assert error.value.__cause__ is None or error.value.__cause__.__cause__ is None
    assert ("READ" in error.value.remedy) is ("do not let" in told)
    assert len(failures) == READ_ATTEMPTS


def test_what_expired_shows_when_the_last_attempt_fails(place: Place) -> None:
    place.brokers.make("a", 5)
    source, failures = place.start(), list[int]()

    def fail() -> None:
        failures.append(1)
        place.reading.meanwhile = fail
        if len(failures) == READ_ATTEMPTS:
            place.brokers.logs["a"][0].first = 2
        raise Py4JError("offset out of range")

    place.reading.meanwhile = fail
    with pytest.raises(OffsetsLostError, match="a/0: offsets 0 to 1 .expired"):
        source.ingest()
    assert len(failures) == READ_ATTEMPTS
