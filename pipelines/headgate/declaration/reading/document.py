"""A YAML file as nodes with line numbers.

Read with the YAML 1.2 core schema: only ``true``/``false``, ``null``, ``~``, numbers and text;
``no``, ``on`` and dates are text. Duplicate keys, aliases, merge keys and tags are refused, because
the meaning of a declaration must be visible where it is read.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from headgate.declaration.quantities import format_size
from headgate.declaration.reading.checked import ProblemReport

_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+")
# Matches a piece of the file in a parser's message, but not the name of a token or one character.
_TEXT = re.compile(r" '[^'<\\][^']+'")
_ENTRY = re.compile(r"( *)[\w.-]+: +")
_TAG = re.compile(r"(&\S+\s+)?!")
# The end of a line in YAML: splitlines() ends a line at other characters too.
_END = re.compile(r"\r\n?|\n")
# A private-use character. It stands for a value that is not valid YAML.
_MARK = "\ue000"
_QUOTE = "quote this value, or write it on a line of its own"


@dataclass(frozen=True)
class YamlScalar:
    """``text`` is as written (without quotes); ``value`` is its value in the core schema."""

    line: int
    text: str
    value: str | int | bool | None


@dataclass(frozen=True)
class YamlSequence:
    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True)
class YamlEntry:
    key: str
    line: int
    node: Node


@dataclass(frozen=True)
class YamlMap:
    line: int
    entries: tuple[YamlEntry, ...]


@dataclass(frozen=True)
class Broken:
    """A value whose fault is reported already. Checks must not report it again."""

    line: int


Node = YamlScalar | YamlSequence | YamlMap | Broken


@dataclass(frozen=True)
class Fault:
    """Something wrong with the YAML itself."""

    line: int
    path: str
    message: str


# A process reads the same declarations again and again: Airflow at each parse of a DAG file.
@lru_cache(maxsize=64)
def read(text: str) -> tuple[Node | None, tuple[Fault, ...]]:
    """Parse one document. The node is None if nothing could be read."""
    faults: list[Fault] = []
    while True:
        node, found = _parse(text)
        if not isinstance(found, Fault):
            return node, (*faults, *found)
        without = _without_value(text, found.line)
        if without is None or any(fault.line == found.line for fault in faults):
            # Later faults may be consequences of the first one.
            return None, tuple(faults[:1]) or (found,)
        faults.append(found)
        text = without


def _without_value(text: str, line: int) -> str | None:
    """The text with a mark in place of the value of the key on ``line``, so that the rest can be
    read; None if that line is not a key and its value."""
    lines = _END.split(text)
    if lines[line - 1].startswith("---"):
        return "\n".join(lines[: line - 1])
    entry = _ENTRY.match(lines[line - 1])
    if entry is None:
        return None
    end = line
    while end < len(lines) and _belongs(lines[end], len(entry[1])):
        end += 1
    blank = [""] * (end - line)
    return "\n".join([*lines[: line - 1], f"{entry[0]}{_MARK}", *blank, *lines[end:]])


def _belongs(line: str, indentation: int) -> bool:
    """Whether a line continues the value of a key that has this indentation."""
    text = line.strip()
    return not text or len(line) - len(line.lstrip()) > indentation or text[0] in "]}"


def _parse(text: str) -> tuple[Node | None, tuple[Fault, ...] | Fault]:
    """The document and what is wrong with it, or one fault of syntax that hides the rest."""
    try:
        with warnings.catch_warnings():
            # The warning would show the anchor's name, which may be a secret that is not quoted.
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            root = YAML(typ="rt", pure=True).compose(io.StringIO(text))
        if root is None:
            return None, (Fault(1, "", "the file is empty"),)
        reader = _YamlReader(text)
        return reader.node(root, ""), tuple(reader.faults)
    except RecursionError:
        return None, (Fault(1, "", "is nested too deeply to be a declaration"),)
    except MarkedYAMLError as error:
        return None, _syntax_fault(error)
    except (YAMLError, ValueError) as error:
        line = len(_END.split(text[: getattr(error, "position", 0) or 0]))
        return None, (Fault(line, "", f"is not YAML: {str(error).splitlines()[0]}"),)


def _syntax_fault(error: MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    said = _TEXT.sub("", error.problem or error.context or "cannot be read")
    message = f"is not YAML: {said.strip()}"
    if "another document" in said:
        return Fault(line, "", "a declaration is one YAML document; remove the second")
    if "flow" in (error.context or "") and error.context_mark:
        # A fault inside { } or [ ] is reported where they begin, not at the end of the file.
        line = error.context_mark.line + 1
    return Fault(line, "", message if "\\t" in said else f"{message}; {_QUOTE}")


class _YamlReader:
    def __init__(self, text: str) -> None:
        self.faults: list[Fault] = []
        self._text = text
        self._seen: set[int] = set()

    def node(self, raw: object, path: str, line: int | None = None) -> Node:
        """``line`` is the line of the key, if there is one."""
        line = line or _line(raw)
        if not isinstance(raw, ScalarNode | SequenceNode | MappingNode):
            return self._fault(line, path, "is not a value")
        if id(raw) in self._seen:
            return self._fault(line, path, "is a YAML alias; write the value out")
        self._seen.add(id(raw))
        if self._has_tag(raw):
            return self._fault(
                line, path, "has a YAML tag; tags are not supported; quote text that begins with !"
            )
        if isinstance(raw, ScalarNode) and raw.value == _MARK:
            return Broken(line)
        if isinstance(raw, ScalarNode):
            return YamlScalar(line, _text(raw), _core(raw))
        if raw.flow_style and any(_unbalanced(child) for child in _plain_children(raw)):
            return self._fault(line, path, f"has an unbalanced parenthesis; {_QUOTE}")
        if isinstance(raw, SequenceNode):
            items = enumerate(raw.value)
            return YamlSequence(line, tuple(self.node(item, f"{path}[{i}]") for i, item in items))
        return YamlMap(line, tuple(self._entries(raw, path)))

    def _entries(self, raw: MappingNode, path: str) -> Iterator[YamlEntry]:
        first: dict[str, int] = {}
        _join_maps(raw)
        for raw_key, raw_value in raw.value:
            line = _line(raw_key)
            if not isinstance(raw_key, ScalarNode):
                self._fault(line, path, "has a key that is not text")
                continue
            key = raw_key.value
            child = f"{path}.{key}" if path else key
            if self._has_tag(raw_key):
                self._fault(line, child, "has a YAML tag; tags are not supported")
                continue
            if key in first:
                self._fault(line, child, f"is given twice (first on line {first[key]})")
                continue
            first[key] = line
            yield YamlEntry(key, line, self.node(raw_value, child, line))

    def _has_tag(self, raw: ScalarNode | SequenceNode | MappingNode) -> bool:
        """Whether the text has a tag here. The parser gives every value a tag, even if none is
        written."""
        return _TAG.match(self._text, raw.start_mark.index) is not None

    def _fault(self, line: int, path: str, message: str) -> Broken:
        self.faults.append(Fault(line, path, message))
        return Broken(line)


def _join_maps(raw: MappingNode) -> None:
    """If a key is given twice with maps, adds the new entries of the second map to the first one,
    so that they are checked too."""
    first: dict[str, MappingNode] = {}
    for key, value in raw.value:
        if isinstance(key, ScalarNode) and isinstance(value, MappingNode):
            known = first.setdefault(key.value, value)
            names = {str(k.value) for k, _ in known.value}
            known.value += [pair for pair in value.value if str(pair[0].value) not in names]


def _line(raw: object) -> int:
    mark = getattr(raw, "start_mark", None)
    return int(mark.line) + 1 if mark is not None else 1


def _text(raw: ScalarNode) -> str:
    text = str(raw.value)
    # The parser leaves a mark at each fold. Only programs that write the block back need it.
    return text.replace("\a", "") if raw.style == ">" else text


def _core(raw: ScalarNode) -> str | int | bool | None:
    text = _text(raw)
    if raw.style is not None:
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    return int(text) if _INTEGER.fullmatch(text) and len(text) < 40 else text


def _plain_children(raw: SequenceNode | MappingNode) -> Iterator[ScalarNode]:
    children = raw.value if isinstance(raw, SequenceNode) else [c for kv in raw.value for c in kv]
    return (c for c in children if isinstance(c, ScalarNode) and c.style is None)


def _unbalanced(scalar: ScalarNode) -> bool:
    text = re.sub(r"'[^']*'", "", str(scalar.value))
    return text.count("(") != text.count(")")


# Parsing YAML is slow, and a file larger than this is not written by a person.
_MOST_BYTES = 1 << 20


def read_file(file: Path, report: ProblemReport, what: str) -> str | None:
    """The text of a file; None if it cannot be read, which is reported. ``what`` names the kind of
    file for messages, such as "declaration"."""
    try:
        content = file.read_bytes()
        if len(content) <= _MOST_BYTES:
            return content.decode("utf-8-sig")
        report.add(1, "", f"is larger than {format_size(_MOST_BYTES)}: not a {what}")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        report.add(line, "", "is not UTF-8 text")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        report.add(1, "", f"cannot be read: {reason}")
    return None


def parse(text: str | None, report: ProblemReport) -> Node | None:
    """The document in a text, if there is one. What is wrong with the YAML is reported; the result
    is None if nothing could be read."""
    node, faults = read(text) if text is not None else (None, ())
    for fault in faults:
        report.add(fault.line, fault.path, fault.message)
    return node
