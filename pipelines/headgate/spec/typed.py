"""What is known of a part of an expression, and how literals look in the parsed tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True)
class Typed:
    """``bounded`` says of a date or timestamp that nothing allowed here can make it overflow;
    ``constant`` that it depends on no column."""

    type: str
    bounded: bool = True
    constant: bool = False


TypeOf = Callable[[exp.Expression], Typed]
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


def sql(node: exp.Expression) -> str:
    """A part of an expression as text, for messages."""
    text = node.sql("spark")
    return text if len(text) <= 60 else f"{text[:57]}..."


def given(node: exp.Expression) -> set[str]:
    """The names of the parts a node was written with."""
    return {name for name, value in node.args.items() if value}
