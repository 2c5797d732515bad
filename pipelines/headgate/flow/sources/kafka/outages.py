"""Decides what errors of Kafka mean for a source, from the names of their classes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

Meaning = Literal["refused", "lasting", "away", "unknown"]
"""``refused``: the brokers refuse this user; ``lasting``: the topic or a record cannot be read, and
a retry does not help; ``away``: brokers do not answer, or are not ready: an outage; ``unknown``:
anything else."""

_REFUSED = re.compile("Authorization|Authentication|IllegalSaslState|UnsupportedSasl")
_LASTING = re.compile("CorruptRecord|InvalidTopic|RecordTooLarge|RecordBatchTooLarge|Unsupported")
_AWAY = re.compile(
    "Timeout|Disconnect|Network|NotAvailable|NotLeader|NotCoordinator|NotController|LoadInProgress"
    "|LeaderEpoch|FetchSession|KafkaStorage|Election|Throttling|StaleBrokerEpoch|NotEnoughReplicas"
    "|BootstrapResolution|Retriable|UnknownServer|UnknownTopic|InconsistentTopicId"
)


NO_ADDRESS = "No resolvable bootstrap urls"
"""The message of an error of Kafka whose class says nothing: no name of a host was resolved."""


def meaning_of(names: Collection[str], *, is_retriable: bool = False) -> Meaning:
    """The meaning of an error whose causes have these ``names``. ``is_retriable``: one of them is a
    RetriableException. A refusal counts more than a missing answer: brokers that refuse a login end
    the connection, too."""
    for meaning, pattern in (("refused", _REFUSED), ("lasting", _LASTING), ("away", _AWAY)):
        if any(map(pattern.search, names)):
            return meaning  # type: ignore[return-value]
    return "away" if is_retriable else "unknown"
