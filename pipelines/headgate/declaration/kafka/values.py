"""Values that only Kafka has: lists of servers, names of topics, where reading starts, offsets by
partition, and client properties, some of which hold secrets. Errors never contain the value of a
property."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.patterns import check_regex
from headgate.declaration.keys.key import Key
from headgate.declaration.names import nearest
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.declaration.reading.document import Broken, YamlEntry, YamlMap, YamlScalar
from headgate.declaration.reading.placeholders import MissingError, has_placeholder, resolve

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


_NAMES = """
client.id client.rack security.protocol sasl.mechanism sasl.jaas.config sasl.kerberos.service.name
sasl.login.callback.handler.class sasl.client.callback.handler.class
sasl.oauthbearer.token.endpoint.url ssl.protocol ssl.truststore.location ssl.truststore.password
ssl.truststore.type ssl.truststore.certificates ssl.keystore.location ssl.keystore.password
ssl.keystore.type ssl.keystore.key ssl.keystore.certificate.chain ssl.key.password
ssl.endpoint.identification.algorithm request.timeout.ms session.timeout.ms delivery.timeout.ms
metadata.max.age.ms fetch.min.bytes fetch.max.bytes fetch.max.wait.ms max.partition.fetch.bytes
max.poll.records compression.type batch.size linger.ms max.request.size
"""
# Names that messages may propose, or show without a value: another name might be part of a value.
_WELL_KNOWN = frozenset(_NAMES.split())
_MOST_OFFSET = (1 << 63) - 1


def read_offsets(node: YamlMap, path: str, line: int, report: ProblemReport) -> Field | None:
    """A value of dict[int, int], or None after reporting what is wrong."""
    before = len(report.problems)
    offsets: dict[int, int] = {}
    for entry in node.entries:
        where = f"{path}.{entry.key}"
        partition, offset = _whole(entry.key, 9), _offset(entry)
        if isinstance(entry.node, Broken):
            continue
        if partition is None:
            report.add(entry.line, where, f"{entry.key!r} is not the number of a partition")
        elif partition in offsets:
            report.add(entry.line, where, f"partition {partition} is given twice")
        elif offset is None:
            report.add(entry.line, where, f"must be an offset, 0 to {_MOST_OFFSET}")
        else:
            offsets[partition] = offset
    if not node.entries:
        report.add(line, path, "is empty; write offsets by partition, such as {0: 1200, 1: 3400}")
    # A fault of the YAML itself is reported already.
    broken = any(isinstance(entry.node, Broken) for entry in node.entries)
    return None if broken or len(report.problems) > before else Field(path, line, offsets)


def _offset(entry: YamlEntry) -> int | None:
    if not isinstance(entry.node, YamlScalar):
        return None
    offset = _whole(entry.node.text, 19)
    return offset if offset is not None and offset <= _MOST_OFFSET else None


def _whole(text: str, digits: int) -> int | None:
    return int(text) if re.fullmatch(rf"[0-9]{{1,{digits}}}", text) else None


class OptionsReader:
    """Reads client properties. No message contains a value, or a text that may be part of a value.
    Without ``needs_secrets``, the value of a placeholder may be missing."""

    def __init__(self, report: ProblemReport, folder: Path, *, needs_secrets: bool) -> None:
        self._report = report
        self._folder = folder
        self._needs_secrets = needs_secrets

    def read(self, node: YamlMap, key: Key, path: str, line: int) -> Field:
        """A value of dict[str, Field] with resolved texts. Wrong entries are reported and left
        out."""
        options: dict[str, Field] = {}
        for entry in node.entries:
            try:
                text = self._value(entry, key)
            except Invalid as error:
                where = f"{path}.{entry.key}" if self._may_be_shown(entry, key) else path
                self._report.add(entry.line, where, error.message, error.nearest)
                continue
            if text is not None:
                options[entry.key] = Field(f"{path}.{entry.key}", entry.line, text)
        return Field(path, line, options)

    def _may_be_shown(self, entry: YamlEntry, key: Key) -> bool:
        """Whether a message may show the entry's name. In ``{a: x, y}``, a comma ends a value, so
        the rest of the value looks like a name."""
        if entry.key in _WELL_KNOWN or entry.key in key.refused:
            return True
        valued = not isinstance(entry.node, YamlScalar) or entry.node.value is not None
        return valued and re.fullmatch(PROPERTY_PATTERN, entry.key) is not None

    def _value(self, entry: YamlEntry, key: Key) -> str | None:
        node = entry.node
        if isinstance(node, Broken):
            return None
        _check_property(entry.key, key)
        if not isinstance(node, YamlScalar):
            raise Invalid("must be one value")
        if node.value is None:
            raise Invalid('has no value; write "" for an empty text, and quote one with a comma')
        if writes_a_secret_out(entry.key, node.text):
            raise Invalid(
                "is a secret and must not be in plain text: write ${env:NAME} or ${file:PATH}"
            )
        if not has_placeholder(node.text):
            return node.text
        try:
            return resolve(node.text, self._folder)
        except MissingError:
            if self._needs_secrets:
                raise
            return node.text


def _check_property(name: str, key: Key) -> None:
    if name in key.refused:
        raise Invalid(f"is set by Headgate: {key.refused[name]}")
    if re.fullmatch(PROPERTY_PATTERN, name) is None:
        raise Invalid(
            "a client property's name has lower-case letters, digits, dots, underscores and "
            "dashes, such as security.protocol",
            nearest(name, _WELL_KNOWN),
        )
    bare = name.removeprefix("kafka.")
    if bare != name:
        raise Invalid("the prefix kafka. is Spark's; write the name that Kafka's client has", bare)
