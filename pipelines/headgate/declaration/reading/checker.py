"""Checks the shape of a document against the table of keys: unknown keys, missing keys, and values
of a wrong kind. The meaning of names is checked afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from headgate.declaration.errors import Invalid
from headgate.declaration.kafka.maps import OptionsReader, read_offsets
from headgate.declaration.keys.key import Key, KeyKind
from headgate.declaration.names import check_column, check_header, check_name, column_like, nearest
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.declaration.reading.document import (
    Broken,
    Node,
    YamlEntry,
    YamlMap,
    YamlScalar,
    YamlSequence,
)
from headgate.declaration.reading.placeholders import MissingError, has_placeholder, resolve
from headgate.declaration.reading.scalars import SCALARS

_TEXTS = ("text", "servers", "topic")
_WANTED = {
    "section": "a map of keys",
    "table": "a map from names to values",
    "names": "a list of names, such as [a, b]",
    "paths": "a list of names, such as [a, b]",
    "groups": "a list of columns, or a map from names to expressions",
    "pairs": "a list of columns, or a map from columns to columns",
    "headers": "a map from names of headers to values",
    "options": "a map from client properties to values",
    "start": "earliest, latest, a time, or a map from partitions to offsets",
}

# The kinds of keys that may be lists, and the kind of an item. What a pair names is looked up in
# the tables that have it, so that a message can name what was meant.
_LISTS: dict[KeyKind, KeyKind] = {
    "names": "column",
    "paths": "path",
    "groups": "column",
    "pairs": "field",
}

_FLOW = re.compile(r"[,:{}\[\]]")  # ends a plain text, or begins another value, inside of { }
_quoted = partial(json.dumps, ensure_ascii=False)


class Checker:
    """``folder`` is where relative ``${file:}`` placeholders start. Without ``needs_secrets``, the
    values of placeholders in sinks and client properties may be missing."""

    def __init__(self, report: ProblemReport, folder: Path, *, needs_secrets: bool = True) -> None:
        self._report = report
        self._folder = folder
        self._needs_secrets = needs_secrets

    def check(self, node: Node, key: Key, path: str, line: int) -> Field | None:
        """The checked value of ``node``, or None after reporting what is wrong with it."""
        if isinstance(node, Broken):
            return None
        if isinstance(node, YamlScalar) and node.value is None:
            self._report.add(line, path, "has no value; give it one or remove the key")
            return None
        if (short := key.child(key.short)) is not None and not isinstance(node, YamlMap):
            value = self.check(node, short, path, line)
            return value and Field(path, line, {short.name: value})
        if key.kind == "section" and isinstance(node, YamlMap):
            return Field(path, line, self._section(node, key, path, line))
        if key.kind == "table" and isinstance(node, YamlMap):
            return self._table(node, key, path, line)
        if key.kind in ("groups", "pairs") and isinstance(node, YamlMap):
            of_pairs = key.kind == "pairs"
            entry = Key("NAME", "field" if of_pairs else "expression")
            check = _any_name if of_pairs else check_column
            return Field(path, line, self._entries(node, entry, path, check))
        if key.kind in _LISTS and isinstance(node, YamlSequence):
            item = Key("", _LISTS[key.kind])
            return self._names(node, item, path, line)
        if key.kind == "options" and isinstance(node, YamlMap):
            reader = OptionsReader(self._report, self._folder, needs_secrets=self._needs_secrets)
            return reader.read(node, key, path, line)
        if key.kind == "headers" and isinstance(node, YamlMap):
            entry = Key("NAME", deployment=True)
            return Field(path, line, self._entries(node, entry, path, check_header))
        if key.kind == "start" and isinstance(node, YamlMap):
            return read_offsets(node, path, line, self._report)
        if isinstance(node, YamlScalar) and (key.kind not in _WANTED or key.kind == "start"):
            return self._scalar(node, key, path, line)
        wanted = _WANTED.get(key.kind, "one value")
        self._report.add(line, path, f"must be {wanted}", _listed(node, key))
        return None

    def _section(self, node: YamlMap, key: Key, path: str, line: int) -> dict[str, Field]:
        """The fields by name; those that are wrong or missing have no value."""
        fields: dict[str, Field] = {}
        replaced: dict[str, Field] = {}
        given = {entry.key for entry in node.entries}
        for entry in node.entries:
            where = _join(path, entry.key)
            child = key.child(entry.key)
            if child is not None and child.comes_next:
                self._comes_next(entry, child, where)
                replaced |= {name: Field(where, entry.line, None) for name in child.replaces}
                continue
            if child is None:
                child = self._meant(entry, key, where)
                if child is None or child.name in given:
                    continue
                given.add(child.name)
            wrong = Field(where, entry.line, None)
            fields[child.name] = self.check(entry.node, child, where, entry.line) or wrong
        instead = _replaced(key, fields)
        for name in (each for each in fields if instead.get(each) and each not in key.one_of):
            at = fields[name]
            self._report.add(at.line, at.path, f"has no meaning with {instead[name]!r}; remove it")
        for name in self._missing(key, fields, {*replaced, *instead}, path, line):
            replaced[name] = Field(_join(path, name), line, None)
        return replaced | fields

    def _comes_next(self, entry: YamlEntry, child: Key, where: str) -> None:
        instead = f"; instead, {child.today}" if child.today else ""
        self._report.add(entry.line, where, f"is not built yet; remove the key{instead}")

    def _meant(self, entry: YamlEntry, key: Key, where: str) -> Key | None:
        """Reports an unknown key, and returns the key that was probably meant. The value is checked
        as the value of that key, and that key is not reported as missing."""
        valid = [child.name for child in key.children if not child.comes_next]
        guess = nearest(entry.key, valid)
        known = "" if guess else f"; the keys here are {', '.join(valid)}"
        self._report.add(entry.line, where, f"unknown key{known}", guess)
        return key.child(guess) if guess else None

    def _missing(
        self, key: Key, given: Collection[str], replaced: Collection[str], path: str, line: int
    ) -> Iterator[str]:
        """Reports keys that are neither given nor replaced, and yields their names."""
        for child in key.children:
            if child.required and child.name not in {*given, *replaced}:
                self._report.add(line, path, f"the key {child.name!r} is missing")
                yield child.name
        one = set(key.one_of).intersection(given)
        if len(one) > 1 or (key.one_of and not one | set(key.one_of).intersection(replaced)):
            names = ", ".join(key.one_of)
            self._report.add(line, path, f"needs exactly one of the keys {names}")
            yield from key.one_of

    def _table(self, node: YamlMap, key: Key, path: str, line: int) -> Field | None:
        if key.entry is None:
            return None
        if not node.entries:
            self._report.add(line, path, "is empty; give it an entry or remove the key")
            return None
        check = check_column if key.of_columns else check_name
        return Field(path, line, self._entries(node, key.entry, path, check))

    def _entries(
        self, node: YamlMap, entry_key: Key, path: str, check: Callable[[str], None]
    ) -> dict[str, Field]:
        fields: dict[str, Field] = {}
        for entry in node.entries:
            where = _join(path, entry.key)
            try:
                check(entry.key)
            except Invalid as error:
                message, guess = error.message, error.nearest
                if entry_key.short == "type":
                    message, guess = f"{message}; write {_with_field(entry)}", None
                self._report.add(entry.line, where, message, guess)
            field = self.check(entry.node, entry_key, where, entry.line)
            # A wrong entry stays known by name, so that references to it are not reported too.
            fields[entry.key] = field or Field(where, entry.line, None)
        return fields

    def _names(self, node: YamlSequence, key: Key, path: str, line: int) -> Field | None:
        names: list[Field] = []
        for item in node.items:
            field = self.check(item, key, path, item.line)
            if field is None:
                continue
            if field.text in [name.text for name in names]:
                self._report.add(item.line, path, f"{field.text!r} is given twice")
            else:
                names.append(field)
        return Field(path, line, tuple(names)) if names or not node.items else None

    def _scalar(self, node: YamlScalar, key: Key, path: str, line: int) -> Field | None:
        secret = has_placeholder(node.text)
        try:
            if secret and not key.deployment:
                raise Invalid(
                    "placeholders are resolved only in a source's place, limits and options, and "
                    "in the sink of publish"
                )
            resolved = resolve(node.text, self._folder) if secret else node.text
        except Invalid as error:
            if isinstance(error, MissingError) and self._may_be_missing(key, path):
                return Field(path, line, node.text, node.text, is_missing=True)
            self._report.add(line, path, error.message, error.nearest)
            return None
        try:
            value = resolved if secret else node.value
            written = node.text if secret else None
            return Field(path, line, SCALARS[key.kind](resolved, value, key), written)
        except Invalid as error:
            if secret:
                self._report.add(line, path, f"the value of {node.text} is not valid here")
            else:
                self._report.add(line, path, error.message, error.nearest)
            return None

    def _may_be_missing(self, key: Key, path: str) -> bool:
        in_sink = path.startswith("publish.") and key.kind in _TEXTS
        return in_sink and not self._needs_secrets


def _replaced(key: Key, fields: Mapping[str, Field]) -> dict[str, str]:
    """The keys of a section that given ones replace, with the path of the one that does. The path
    is empty if its value is wrong, which is reported."""
    found: dict[str, str] = {}
    for child in key.children:
        if (at := fields.get(child.name)) is None:
            continue
        found |= dict.fromkeys(child.replaces, child.name)
        inner = at.value if isinstance(at.value, dict) else {}
        for nested in child.children:
            if (given := inner.get(nested.name)) is not None:
                path = "" if given.value is None else f"{child.name}.{nested.name}"
                found |= dict.fromkeys(nested.replaces_above, path)
    return found


def _any_name(_: str) -> None:
    """No name is wrong by itself."""


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _with_field(entry: YamlEntry) -> str:
    """The line that declares a column for a field whose name cannot be that of a column."""
    node = entry.node
    if isinstance(node, YamlMap):
        node = next((each.node for each in node.entries if each.key == "type"), node)
    type_ = node.text if isinstance(node, YamlScalar) else "string"
    type_ = _quoted(type_) if _FLOW.search(type_) else type_
    return f"{column_like(entry.key)}: {{field: {_quoted(entry.key)}, type: {type_}}}"


def _listed(node: Node, key: Key) -> str | None:
    if key.kind in _LISTS and isinstance(node, YamlScalar):
        return f"[{node.text}]"
    return None
