"""Which errors are outages, for which a driver waits, and which need a person."""

from __future__ import annotations

import errno
import os

import pytest

from headgate.flow.sources.files.landing import is_outage
from headgate.flow.sources.kafka.failures import Meaning, meaning_of

AWAY = [
    *("EIO", "ESTALE", "ETIMEDOUT", "ENOTCONN", "ENODEV", "EHOSTDOWN", "EHOSTUNREACH"),
    *("ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EREMOTEIO", "ESHUTDOWN"),
]
NEEDS_A_PERSON = [
    *("EACCES", "EPERM", "ENOENT", "ENOTDIR", "EISDIR", "EROFS", "ELOOP", "ENAMETOOLONG"),
    *("ENOSPC", "EDQUOT", "EMFILE", "ENOMEM"),
]


@pytest.mark.parametrize("name", [*AWAY, *NEEDS_A_PERSON])
def test_errors_of_the_system(name: str) -> None:
    number = getattr(errno, name)
    error = OSError(number, os.strerror(number), "/mnt/in/a.json")
    assert is_outage(error) is (name in AWAY)
    later = ValueError("a decoder has failed")
    later.__cause__ = error
    assert is_outage(later) is (name in AWAY)


@pytest.mark.parametrize(
    ("said", "is_away"),
    [
        ("AWS Error NETWORK_CONNECTION during ListObjectsV2 operation: curlCode: 7, Could", True),
        ("AWS Error SLOW_DOWN during GetObject operation: reduce your request rate", True),
        ("AWS Error UNKNOWN (HTTP status 503): HTTP response code 503", True),
        ("When reading: curlCode: 6, Couldn't resolve host name", True),
        ("google::cloud::Status(UNAVAILABLE: retry policy exhausted)", True),
        ("read failed: Stale file handle", True),
        ("AWS Error ACCESS_DENIED during ListObjectsV2 operation: Access Denied", False),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation", False),
        ("AWS Error INVALID_ACCESS_KEY_ID", False),
        ("Not a gzip file", False),
    ],
)
def test_errors_of_object_stores_are_known_by_their_words(said: str, is_away: bool) -> None:
    assert is_outage(OSError(said)) is is_away


def test_an_error_of_no_system_is_no_outage() -> None:
    assert not is_outage(ValueError("Input/output error"))


@pytest.mark.parametrize(
    ("names", "meaning"),
    [
        (["TimeoutException"], "away"),
        (["DisconnectException"], "away"),
        (["BrokerNotAvailableException"], "away"),
        (["LeaderNotAvailableException"], "away"),
        (["NotLeaderOrFollowerException"], "away"),
        (["CoordinatorNotAvailableException"], "away"),
        (["CoordinatorLoadInProgressException"], "away"),
        (["NotCoordinatorException"], "away"),
        (["UnknownTopicOrPartitionException"], "away"),  # a topic that is gone is known otherwise
        (["UnknownServerException"], "away"),
        (["KafkaStorageException"], "away"),
        (["TopicAuthorizationException"], "refused"),
        (["GroupAuthorizationException"], "refused"),
        (["SaslAuthenticationException"], "refused"),
        (["SslAuthenticationException", "TimeoutException"], "refused"),
        (["UnsupportedVersionException"], "lasting"),
        (["CorruptRecordException"], "lasting"),
        (["InvalidTopicException"], "lasting"),
        (["RecordDeserializationException"], "unknown"),
        (["OffsetOutOfRangeException"], "unknown"),
        ([], "unknown"),
    ],
)
def test_errors_of_kafka(names: list[str], meaning: Meaning) -> None:
    assert meaning_of(names) == meaning
    assert meaning_of(names, is_retriable=True) == ("away" if meaning == "unknown" else meaning)
