"""What is known of one key of a declaration: its shape, default, bounds and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

KeyKind = Literal[
    "section",  # a map with the keys of `children`
    "table",  # a map from names the author chooses to `entry`
    "names",  # a list of column names
    "paths",  # a list of columns, or fields inside of structs, such as payload.id
    "groups",  # a list of column names, or a map from names to expressions
    "pairs",  # a list of column names, or a map from column names to others
    "text",
    "name",
    "column",
    "path",  # a column, or a field inside of structs
    "field",  # the name of a field of a record, which may be any text
    "choice",
    "boolean",
    "integer",
    "size",
    "duration",
    "delimiter",  # the character between the fields of a line of CSV
    "share",  # a part of all, such as 5 %
    "type",
    "expression",
    "servers",  # a list of host:port
    "topic",
    "pattern",  # a regular expression for names of topics
    "start",  # an end of a topic, a time, or a map from partitions to offsets
    "options",  # a map from client properties to their texts
    "headers",  # a map from names of HTTP headers to texts
]

YEAR = timedelta(days=366)
INSTANT = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Key:
    """``low`` and ``high`` bound a quantity, both inclusive (an int or a timedelta). ``default`` is
    written as in a declaration. A duration may also be one of the ``choices``. A key of the
    ``deployment`` may hold ``${env:NAME}`` and ``${file:PATH}`` (a source's kind says which of them
    do not count in digests). A key that ``comes_next`` is known, and refused: ``today`` says what
    to use instead. A key ``replaces`` other keys: if it is given, they are not required;
    ``replaces_above`` are keys of the section around its own one. Exactly one of the keys
    ``one_of`` a section is given. The names in a table ``of_columns`` follow the rule for fields,
    which allows letters of both cases. ``refused`` has the client properties that options must not
    have, and why. A section with a ``short`` form may also be written as the value of its child
    ``short``."""

    name: str
    kind: KeyKind = "text"
    doc: str = ""
    required: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    low: Any = None
    high: Any = None
    children: tuple[Key, ...] = ()
    entry: Key | None = None
    one_of: tuple[str, ...] = ()
    of_columns: bool = False
    deployment: bool = False
    comes_next: bool = False
    today: str = ""
    replaces: tuple[str, ...] = ()
    replaces_above: tuple[str, ...] = ()
    short: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)

    def child(self, name: str) -> Key | None:
        return next((key for key in self.children if key.name == name), None)

    def replacing(self, name: str) -> tuple[tuple[str, ...], ...]:
        """The paths, below this section, of the keys that replace one of its keys."""
        built = [each for each in self.children if not each.comes_next]
        own = ((each.name,) for each in built if name in each.replaces)
        inner = (
            (each.name, nested.name)
            for each in built
            for nested in each.children
            if name in nested.replaces_above
        )
        return (*own, *inner)


def comes_next(name: str, today: str = "", replaces: tuple[str, ...] = ()) -> Key:
    """A key that is reserved for a later version."""
    return Key(name, comes_next=True, today=today, replaces=replaces)
