"""What is known of a part of an expression, and how literals look in the parsed tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from sqlglot import exp

from headgate.declaration.errors import Invalid
from headgate.declaration.types import DataType

# What a node's ``meta`` has if it was written after a plus, or is a number with the suffix L.
PLUS, SUFFIXED = "plus", "suffixed"


class NotKnown(Invalid):
    """These rules do not cover a part of an expression; Spark's analysis decides about the whole
    expression (``spark.py``). The message is used if Spark does not know the part either."""


class Reach(IntEnum):
    """How far a time may be: in the years 1 to 9999, as in every column; slightly outside; or
    anywhere in Spark's range."""

    CALENDAR = 0
    NEAR = 1
    ANYWHERE = 2


@dataclass(frozen=True)
class Typed:
    """The type of a part of an expression, and the reach of its dates and timestamps."""

    type: DataType
    reach: Reach = Reach.CALENDAR

    @property
    def bounded(self) -> bool:
        """Whether no operation that is allowed here can make it overflow."""
        return self.reach < Reach.ANYWHERE


class TypeOf(Protocol):
    """Returns the type of a part of an expression. Raises Unresolved, or Invalid with the reason
    why it has no type."""

    def __call__(self, node: exp.Expression) -> Typed: ...

    def within(self, variables: Mapping[str, Typed]) -> TypeOf:
        """The same inside a lambda with these variables. Raises Invalid if one has a name that
        means something else outside."""


Handler = Callable[[exp.Expression, TypeOf], Typed]


def literal_text(node: exp.Expression) -> str | None:
    """The text of a string literal, or None for anything else."""
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        return str(node.this)
    return None


def literal_integer(node: exp.Expression) -> int | None:
    """The value of an integer literal, or None for anything else."""
    if isinstance(node, exp.Neg):
        inner = literal_integer(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        return int(node.this)
    return None


def literal_digits(node: exp.Expression) -> int | None:
    """The number of digits of what Spark parses as an integer literal: with one minus at most, with
    the suffix L, in parentheses. None for anything else."""
    if isinstance(node, exp.Paren) and PLUS not in node.meta:
        return literal_digits(node.this)
    number = node.this if isinstance(node, exp.Neg) else node
    if PLUS in node.meta or PLUS in number.meta:
        return None
    if SUFFIXED in number.meta:
        number = number.this
    value = literal_integer(number) if isinstance(number, exp.Literal) else None
    return None if value is None else len(str(value))


def furthest(parts: Iterable[Typed]) -> Reach:
    """The greatest reach of some parts."""
    return max((part.reach for part in parts), default=Reach.CALENDAR)


def mixed(parts: Iterable[Typed]) -> str:
    """The different types of these, for messages."""
    return " and ".join(dict.fromkeys(shown(part.type) for part in parts))


def shown(type_: DataType) -> str:
    """A type for messages: a long one is cut."""
    return _cut(str(type_))


def with_article(type_: DataType) -> str:
    """A type for messages, such as ``an int`` and ``a string``."""
    text = shown(type_)
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def sql(node: exp.Expression) -> str:
    """A part of an expression as text, for messages."""
    return _cut(node.sql("spark"))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def given(node: exp.Expression) -> set[str]:
    """The names of the parts a node was written with."""
    return {name for name, value in node.args.items() if value}
