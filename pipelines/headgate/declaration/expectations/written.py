"""Rules as the YAML text of a suite."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# Only for values of keys: in a list, a comma or a bracket would end the text.
_TEXT = re.compile(r"[A-Za-z_(][\w ()<>=!+*/.,-]*[\w)]", re.ASCII)
_FRACTION = re.compile(r"[-+]?[0-9]+\.[0-9]+|[0-9.]+ %")
# Words that some readers of YAML do not read as text.
_OTHER = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
# Words of an expectation's name that are not needed beside the name of a column.
_FILLING = re.compile(r"(^|_)(expect|columns?|multicolumn|select|values?|record|to|be)(?=_|$)")
_ID_LENGTH = 63


@dataclass(frozen=True)
class WrittenRule:
    """The ``keys`` of a rule in order, with plain values, lists of them or lists of lists."""

    keys: Mapping[str, Any]
    comment: str = ""


def suite_text(rules: Iterable[WrittenRule], *head: str) -> str:
    """The text of ``expectations/NAME.yml``. ``head`` are lines of comment above the rules."""
    lines = [*map(_comment, head), "expectations:"]
    for rule in rules:
        if rule.comment:
            lines.append(f"  {_comment(rule.comment)}")
        lines += _rule(rule.keys)
    return "\n".join(lines) + "\n"


def id_for(expectation: str, *columns: str) -> str:
    """A name from an expectation and its columns."""
    return "_".join([*columns, _FILLING.sub("", expectation).strip("_")])


def new_id(wanted: str, taken: Collection[str]) -> str:
    """An id for a rule that no other rule has, as similar to ``wanted`` as possible."""
    base = re.sub(r"[^a-z0-9]+", "_", wanted.lower()).strip("_") or "rule"
    base = base if base[0].isalpha() else f"rule_{base}"
    number, found = 1, base[:_ID_LENGTH]
    while found in taken:
        number += 1
        end = f"_{number}"
        found = base[: _ID_LENGTH - len(end)] + end
    return found


def _rule(keys: Mapping[str, Any]) -> Iterator[str]:
    for index, (key, value) in enumerate(keys.items()):
        yield f"  {'  ' if index else '- '}{key}: {_value(value, _TEXT)}"


def _value(value: Any, plain: re.Pattern[str] = _WORD) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    text = str(value)
    is_plain = plain.fullmatch(text) or _WORD.fullmatch(text)
    if _FRACTION.fullmatch(text) or (is_plain and text.lower() not in _OTHER):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = f"{ord(character):08x}"
    return f"\\u{code[4:]}" if code.startswith("0000") else f"\\U{code}"


def _comment(text: str) -> str:
    return f"# {''.join(c if c.isprintable() else ' ' for c in text)}"
