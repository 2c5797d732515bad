"""What can be wrong with a Kafka source."""

from __future__ import annotations

from headgate.sources.errors import SourceError


class BrokersUnreachableError(SourceError):
    """No broker answers. It may be over in a moment."""


class BrokersRefuseError(SourceError):
    """The brokers answer, and refuse: credentials, rights or a client property."""


class UnknownTopicError(SourceError):
    """The topic does not exist."""


class OffsetsLostError(SourceError):
    """Records that were not read yet are gone; a person has to decide."""
