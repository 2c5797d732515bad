"""Values that only Kafka has: lists of servers, names of topics, where reading starts, and secrets
in client properties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.patterns import check_regex
from headgate.declaration.names import nearest
from headgate.declaration.reading.placeholders import has_placeholder

TOPIC_PATTERN = r"^[A-Za-z0-9._-]{1,249}$"
SERVERS_PATTERN = r"^\s*[^\s,@/]+:[0-9]+\s*(,\s*[^\s,@/]+:[0-9]+\s*)*$"
PROPERTY_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,199}$"
TIME_PATTERN = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$"
# Properties whose values the Java client itself hides.
SECRET_PATTERN = (
    r"password|passphrase|secret|jaas\.config$|^ssl\.keystore\.key$|^basic\.auth\.user\.info$"
)
ENDS = ("earliest", "latest")

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.%]+\]")
_SECRET = re.compile(SECRET_PATTERN)
# The password in a JAAS configuration or in a list of settings. A quote that is not closed does not
# hide one.
_ASSIGNED = re.compile(
    r"""(?:password|passphrase|secret)\w*\s*=\s*
    (?:"((?:[^"\\]|\\.)*)"|'([^']*)'|["']?([^\s;,]+))""",
    re.IGNORECASE | re.VERBOSE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_servers(text: str) -> str:
    """The list without its spaces: ``host:port,host:port``."""
    if "@" in text:
        raise Invalid("is a list of host:port; a user and a password belong into options")
    return ",".join(_server(part.strip()) for part in text.split(","))


def _server(part: str) -> str:
    host, colon, port = part.rpartition(":")
    if not colon and _HOST.fullmatch(part):
        raise Invalid(f"{part!r} has no port", f"{part}:9092")
    if not _HOST.fullmatch(host) or not re.fullmatch(r"[0-9]{1,5}", port):
        raise Invalid(f"{part!r} is not host:port, such as localhost:9092")
    if not 1 <= int(port) <= 65535:
        raise Invalid(f"{part!r} has no port that exists: 1 to 65535")
    return part


def check_topic(text: str) -> None:
    """Raises Invalid unless Kafka could have a topic of this name."""
    if text in (".", "..") or not re.fullmatch(TOPIC_PATTERN, text):
        raise Invalid(
            f"{text!r} is not the name of a topic: letters, digits, dots, underscores and dashes, "
            "at most 249, and not . or .."
        )


def check_pattern(text: str) -> None:
    """Raises Invalid unless ``text`` matches the same names in Java and in Python."""
    check_regex(text, looking_ahead=True)


def parse_start(text: str) -> str | datetime:
    """``earliest``, ``latest`` or a moment in UTC."""
    if text in ENDS:
        return text
    if not re.fullmatch(TIME_PATTERN, text):
        message = f"{text!r} is not earliest, latest or a time with an offset, to the millisecond"
        raise Invalid(message, _time_with_offset(text) or nearest(text, ENDS))
    try:
        time = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(f"{text!r} is not in the calendar") from None
    if time < _EPOCH:
        raise Invalid(f"{text!r} is before 1970, and Kafka has no such times")
    return time


def _time_with_offset(text: str) -> str | None:
    guesses = (f"{text}Z", f"{text}T00:00:00Z")
    return next((guess for guess in guesses if re.fullmatch(TIME_PATTERN, guess)), None)


def writes_a_secret_out(name: str, text: str) -> bool:
    """Whether a client property, as the declaration writes it, holds a secret in plain text."""
    if _SECRET.search(name) and not has_placeholder(text):
        return True
    return any(not has_placeholder(secret) for secret in assigned_secrets(text))


def assigned_secrets(text: str) -> Iterator[str]:
    """The values, as they are written between quotes, that a text such as a JAAS configuration
    assigns to secrets."""
    for found in _ASSIGNED.finditer(text):
        if secret := found[1] or found[2] or found[3]:
            yield secret
