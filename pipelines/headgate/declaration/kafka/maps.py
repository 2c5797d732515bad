"""Maps that only Kafka has: offsets by partition, and client properties, some of which hold
secrets. Errors never contain the value of a property."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.declaration.errors import Invalid
from headgate.declaration.kafka.values import PROPERTY_PATTERN, writes_a_secret_out
from headgate.declaration.keys.key import Key
from headgate.declaration.names import nearest
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.declaration.reading.document import Broken, YamlEntry, YamlMap, YamlScalar
from headgate.declaration.reading.placeholders import MissingError, has_placeholder, resolve

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
