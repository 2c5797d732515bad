"""Types of literals and of the results of operators: arithmetic, time shifts, bits, joined text."""

from __future__ import annotations

import re

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import coercion
from headgate.declaration.expressions.literals import INTERVAL
from headgate.declaration.expressions.typed import (
    PLUS,
    Handler,
    NotKnown,
    Reach,
    Typed,
    TypeOf,
    literal_digits,
    sql,
    with_article,
)

_OPERATORS: dict[type, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_OPERATORS |= {exp.Mod: "%", exp.IntDiv: "div"}
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot)
# Longer spans, added again and again, could leave the range of a timestamp.
_SPANS = {"YEAR": 1_000, "MONTH": 12_000, "WEEK": 50_000, "DAY": 366_000, "HOUR": 1_000_000}
_SPANS |= {"MINUTE": 1_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000_000}


def _literal(node: exp.Expression, type_of: TypeOf) -> Typed:
    text = str(node.this)
    if isinstance(node, exp.RawString) or node.is_string:
        return Typed(types.STRING)
    return Typed(_number_type(text))


def _number_type(text: str) -> types.DataType:
    if "e" in text.lower():
        return types.DOUBLE
    digits = text.lstrip("-")
    if digits.isdecimal():
        value = int(text)
        if -(2**31) <= value < 2**31:
            return types.INT
        if -(2**63) <= value < 2**63:
            return types.BIGINT
    whole, _, fraction = digits.partition(".")
    precision = max(len(whole.lstrip("0")) + len(fraction), 1)
    if precision > types.MAX_PRECISION:
        raise Invalid(f"the number {text} has more than 38 digits")
    return types.Decimal(precision, len(fraction))


def _boolean(node: exp.Expression, type_of: TypeOf) -> Typed:
    return Typed(types.BOOLEAN)


def _null(node: exp.Expression, type_of: TypeOf) -> Typed:
    return Typed(types.VOID)


def _inner(node: exp.Expression, type_of: TypeOf) -> Typed:
    return type_of(node.this)


def _negative(node: exp.Expression, type_of: TypeOf) -> Typed:
    plain = isinstance(node.this, exp.Literal) and PLUS not in node.this.meta
    if plain and not node.this.is_string:
        return Typed(_number_type(f"-{node.this.this}"))
    typed = type_of(node.this)
    check_number(node.this, typed, "-")
    return typed


def _arithmetic(node: exp.Expression, type_of: TypeOf) -> Typed:
    operator = _OPERATORS[type(node)]
    if isinstance(node.expression, exp.Interval) and operator in "+-":
        return _shifted(node, type_of)
    left, right = type_of(node.this), type_of(node.expression)
    check_number(node.this, left, operator)
    check_number(node.expression, right, operator)
    if operator == "div":
        _check_exact(node.this, left)
        _check_exact(node.expression, right)
    pair = (_operand_type(node.this, left, right), _operand_type(node.expression, right, left))
    return Typed(coercion.arithmetic_type(operator, *pair))


def check_number(node: exp.Expression, typed: Typed, operator: str) -> None:
    """Raises Invalid unless an operand is a number."""
    if types.is_number(typed.type):
        return
    if typed.type == types.VOID:
        raise Invalid(f"{operator} with null is always null")
    remedy, wrong = "write cast(... as double)", Invalid
    if types.is_time(typed.type):
        remedy, wrong = "use date_add, datediff, timestampdiff or an interval", NotKnown
    raise wrong(
        f"{operator} takes numbers, and {sql(node)} is {with_article(typed.type)}; {remedy}"
    )


def _check_exact(node: exp.Expression, typed: Typed) -> None:
    if types.is_floating(typed.type):
        remedy = "use / and floor, or write cast(... as bigint)"
        what = with_article(typed.type)
        raise Invalid(f"div takes exact numbers, and {sql(node)} is {what}; {remedy}")


def _operand_type(node: exp.Expression, typed: Typed, other: Typed) -> types.DataType:
    """If the other operand is a decimal, Spark gives an integer literal only the digits it
    needs."""
    digits = literal_digits(node)
    if digits is not None and types.is_decimal(other.type):
        return types.Decimal(digits, 0)
    return typed.type


def _shifted(node: exp.Expression, type_of: TypeOf) -> Typed:
    typed = type_of(node.this)
    unit = _interval_unit(node.expression)
    if not types.is_time(typed.type):
        what = with_article(typed.type)
        raise NotKnown(f"an interval can be added to a date or a timestamp, not to {what}")
    if not typed.bounded:
        raise NotKnown(
            "an interval cannot be added to a time made from text or numbers, which could "
            "overflow; make it a silver column, and use it in gold"
        )
    if typed.type == types.DATE and unit not in ("YEAR", "MONTH", "WEEK", "DAY"):
        raise NotKnown("to add hours or less to a date, write cast(... as timestamp) first")
    return Typed(typed.type, Reach.NEAR)


def _interval_unit(node: exp.Expression) -> str:
    unit = node.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    if name not in _SPANS or not re.fullmatch(r"-?[0-9]{1,20}", number):
        raise NotKnown(INTERVAL)
    if abs(int(number)) > _SPANS[name]:
        raise NotKnown(f"an interval has at most {_SPANS[name]} {name.lower()}s")
    return name


def _interval(node: exp.Expression, type_of: TypeOf) -> Typed:
    raise NotKnown("an interval can only be added to or taken from a date or a timestamp")


def _bits(node: exp.Expression, type_of: TypeOf) -> Typed:
    operands = [node.this] if isinstance(node, exp.BitwiseNot) else [node.this, node.expression]
    known = [type_of(operand) for operand in operands]
    type_ = coercion.common_type(typed.type for typed in known)
    if type_ is None or any(typed.type not in types.INTEGRALS for typed in known):
        raise Invalid("& | ^ ~ take whole numbers")
    return Typed(type_)


# In Spark, || has the precedence of +, above that of &. In sqlglot, it has the precedence of &.
_UNLIKE_JOINED = (*_OPERATORS, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)


def _joined(node: exp.Expression, type_of: TypeOf) -> Typed:
    known = []
    for operand in (node.this, node.expression):
        if type(operand) in _UNLIKE_JOINED:
            raise Invalid(f"write parentheses around {sql(operand)}")
        known.append(type_of(operand))
    if any(types.is_nested(typed.type) for typed in known):
        raise NotKnown("|| joins texts, not arrays")
    return Typed(types.STRING)


ARITHMETIC: dict[type, Handler] = {
    exp.Literal: _literal,
    exp.RawString: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _inner,
    exp.Neg: _negative,
    **dict.fromkeys(_OPERATORS, _arithmetic),
    **dict.fromkeys(_BITS, _bits),
    exp.DPipe: _joined,
    exp.Interval: _interval,
}
