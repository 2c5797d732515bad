"""Errors of a Kafka source."""

from __future__ import annotations

from headgate.flow.sources.errors import SourceError, UnreachableError


class BrokersUnreachableError(UnreachableError):
    """No broker answers."""


class BrokersRefuseError(SourceError):
    """The brokers refuse the request because of credentials, rights or a client property."""


class UnknownTopicError(SourceError):
    """The topic does not exist."""


class OffsetsLostError(SourceError):
    """Unread records are lost. A person must decide."""
