"""Types of conditions: comparisons, logic, IN, BETWEEN, IS and LIKE."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.coercion import comparable
from headgate.declaration.expressions.literals import check_literal, check_time_literal
from headgate.declaration.expressions.typed import (
    Handler,
    NotKnown,
    Typed,
    TypeOf,
    given,
    literal_text,
    sql,
    with_article,
)

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_LIKES = (exp.Like, exp.ILike, exp.RegexpLike)
# Spark and sqlglot parse these differently if there are no parentheses between them.
_LOOSE = (*_COMPARISONS, *_LIKES, exp.Is, exp.In, exp.Between, exp.Not)


def is_boolean(typed: Typed) -> bool:
    return typed.type in (types.BOOLEAN, types.VOID)


def compare(left: exp.Expression, right: exp.Expression, type_of: TypeOf) -> Typed:
    """The type of any comparison of two values. Spark reads a text literal as a time if it is
    compared with a time, so the literal is checked as a time. (``_in`` refuses the exception.)"""
    for operand in (left, right):
        if isinstance(operand, _LOOSE):
            raise Invalid(f"write parentheses around {sql(operand)}")
    first, second = type_of(left), type_of(right)
    for node, other in ((left, second), (right, first)):
        text = literal_text(node)
        if types.is_time(other.type) and text is not None:
            check_time_literal(other.type, text)
            return Typed(types.BOOLEAN)
    if not comparable(first.type, second.type):
        types_ = f"{with_article(first.type)} with {with_article(second.type)}"
        raise Invalid(f"compares {types_}; cast one of them")
    check_widened([first, second])
    return Typed(types.BOOLEAN)


def check_widened(operands: Iterable[Typed]) -> None:
    """Raises Invalid if Spark would widen a date to a timestamp, and the result could overflow."""
    known = list(operands)
    widens = {types.DATE, types.TIMESTAMP} <= {typed.type for typed in known}
    if widens and not all(typed.bounded for typed in known):
        raise NotKnown("mixes a date made from text with a timestamp; cast both to date")


def _comparison(node: exp.Expression, type_of: TypeOf) -> Typed:
    return compare(node.this, node.expression, type_of)


def _logic(node: exp.Expression, type_of: TypeOf) -> Typed:
    operands = [node.this] if isinstance(node, exp.Not) else [node.this, node.expression]
    known = [type_of(operand) for operand in operands]
    for operand, typed in zip(operands, known, strict=True):
        if not is_boolean(typed):
            word = type(node).__name__.upper()
            what = with_article(typed.type)
            raise Invalid(f"{word} takes conditions, and {sql(operand)} is {what}")
    return Typed(types.BOOLEAN)


def _between(node: exp.Expression, type_of: TypeOf) -> Typed:
    if given(node) - {"this", "low", "high"}:
        raise NotKnown("this form of BETWEEN is not supported")
    compare(node.this, node.args["low"], type_of)
    compare(node.this, node.args["high"], type_of)
    return Typed(types.BOOLEAN)


def _in(node: exp.Expression, type_of: TypeOf) -> Typed:
    if given(node) != {"this", "expressions"}:
        wrong = Invalid if node.args.get("query") else NotKnown
        raise wrong("IN takes a list of values, such as: x in (1, 2)")
    for item in node.expressions:
        compare(node.this, item, type_of)
    operands = [node.this, *node.expressions]
    texts = [text for text in map(literal_text, operands) if text is not None]
    # IN compares a timestamp with text as text. With a date, this has the result of `=`.
    if texts and any(type_of(operand).type == types.TIMESTAMP for operand in operands):
        raise Invalid(f"IN compares a timestamp with text as text; write timestamp '{texts[0]}'")
    return Typed(types.BOOLEAN)


def _is(node: exp.Expression, type_of: TypeOf) -> Typed:
    if isinstance(node.this, _LOOSE):
        raise Invalid(f"write parentheses around {sql(node.this)}")
    typed = type_of(node.this)
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise NotKnown("IS takes NULL, TRUE or FALSE")
    if isinstance(node.expression, exp.Boolean) and not is_boolean(typed):
        raise Invalid(f"IS TRUE takes a condition, not {with_article(typed.type)}")
    return Typed(types.BOOLEAN)


def _like(node: exp.Expression, type_of: TypeOf) -> Typed:
    word = "RLIKE" if isinstance(node, exp.RegexpLike) else type(node).__name__.upper()
    if isinstance(node.this, _LOOSE):
        raise Invalid(f"write parentheses around {sql(node.this)}")
    typed = type_of(node.this)
    if typed.type not in (types.STRING, types.VOID):
        what = with_article(typed.type)
        raise Invalid(f"{word} takes a string, not {what}; write cast(... as string)")
    text = literal_text(node.expression)
    if text is None:
        wrong = Invalid if word == "RLIKE" else NotKnown
        raise wrong(f"the pattern of {word} must be a literal text")
    check_literal("regex" if word == "RLIKE" else "like", text)
    return Typed(types.BOOLEAN)


CONDITIONS: dict[type, Handler] = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_LIKES, _like),
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _logic),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
}
