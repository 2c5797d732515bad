"""Function calls: whether the arguments fit, and the type of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.contracts.measure import measure_name
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import coercion
from headgate.declaration.expressions.functions import (
    AGGREGATES,
    REFUSED,
    SPARK_FUNCTIONS,
    Function,
    Parameter,
    functions,
)
from headgate.declaration.expressions.patterns import group_count
from headgate.declaration.expressions.typed import (
    NotKnown,
    Reach,
    Typed,
    furthest,
    literal_integer,
    literal_text,
    mixed,
    sql,
    with_article,
)
from headgate.declaration.names import nearest

_MOVING = ("date_add", "dateadd", "date_sub", "add_months", "next_day", "trunc", "date_trunc")
# Their results may be outside the calendar, but not far. (An offset that is read shifts a time,
# too.)
_SHIFTING = frozenset(
    (*_MOVING, "from_utc_timestamp", "to_utc_timestamp", "to_timestamp", "to_date")
)
# Spark refuses a null without a type as their arguments.
_NO_NULL = ("array_contains", "array_position", "map_contains_key")


@dataclass(frozen=True)
class Operand:
    """An argument as parsed, and as typed."""

    node: exp.Expression
    typed: Typed


def find_function(name: str) -> Function:
    """The allowed function of this name. If there is none, raises Invalid with the reason."""
    lower = name.lower()
    found = functions().get(lower)
    if found is not None:
        return found
    if measure_name(lower) is not None:
        raise Invalid(f"{lower}() is a measure: it belongs under measures")
    if lower in AGGREGATES:
        raise Invalid(f"{lower}() is an aggregate that is not supported")
    if lower in REFUSED:
        raise Invalid(f"the function {lower}() is not allowed: it {REFUSED[lower]}")
    if lower in SPARK_FUNCTIONS:
        raise NotKnown(f"Spark's analysis has to check {lower}()")
    guess = nearest(lower, functions()) or nearest(lower, SPARK_FUNCTIONS)
    raise Invalid(f"unknown function {name}()", guess)


def arguments_for(function: Function, count: int) -> tuple[Parameter, ...]:
    """The declarations of ``count`` given arguments. Raises Invalid for a wrong count."""
    declared = list(function.arguments)
    if declared and declared[-1].repeated:
        declared += [declared[-1]] * (count - len(declared))
    least = sum(not (a.optional or a.repeated) for a in declared)
    if not least <= count <= len(declared):
        raise NotKnown(f"{function.name}() takes {function.usage}, not {count}")
    return tuple(declared[:count])


def is_constant(node: exp.Expression) -> bool:
    """Whether Spark could evaluate it before it runs: Spark then reads 'now' and 'today' as
    times."""
    return node.find(exp.Column) is None


def check_together(function: Function, operands: Sequence[Operand]) -> None:
    """Raises Invalid if arguments that are valid one by one are not valid together."""
    if function.name == "regexp_extract":
        wanted = literal_integer(operands[2].node) if len(operands) > 2 else 1
        groups = group_count(literal_text(operands[1].node) or "")
        if (wanted or 0) > groups:
            raise Invalid(f"regexp_extract(): the expression has {groups} groups, not {wanted}")
    if any(argument.kind == "member" for argument in function.arguments):
        _check_member(function, *operands)
    if function.name in _NO_NULL and types.VOID in (o.typed.type for o in operands):
        raise Invalid(f"{function.name}() with null is always null")
    if function.name == "element_at":
        _check_place(*operands)
    if function.name == "to_date" and len(operands) > 1 and operands[0].typed.type != types.STRING:
        raise Invalid("to_date() with a pattern reads a string")
    if function.name == "to_date" and is_constant(operands[0].node):
        raise Invalid("a constant date is written as a literal: date '2026-01-31'")


def _check_member(function: Function, array: Operand, member: Operand) -> None:
    element, given = array.typed.type, member.typed.type
    if not isinstance(element, types.Array):
        return
    element = element.element
    both = types.is_number(element) and types.is_number(given)
    if function.name == "array_position":
        both = both and _positioned(element, given)
    if types.has_map(element) or not (both or given == element):
        raise Invalid(
            f"{function.name}() looks for {with_article(element)}, and {sql(member.node)} is "
            f"{with_article(given)}"
        )


def _positioned(element: types.DataType, given: types.DataType) -> bool:
    """Whether ``array_position`` finds a number of one type among numbers of another: Spark casts
    no decimal, and a whole number only to a decimal that holds all numbers of its type."""
    decimals = [type_ for type_ in (element, given) if types.is_decimal(type_)]
    return not decimals or decimals == [coercion.common_type((element, given))]


def _check_place(nested: Operand, place: Operand) -> None:
    """Checks a position or a key of ``element_at``. Spark fails at position 0, even a computed
    one, and at -2147483648."""
    if isinstance(nested.typed.type, types.Map):
        if place.typed.type != types.STRING:
            what = with_article(place.typed.type)
            raise Invalid(f"element_at() takes a string as a key, not {what}")
    elif not 0 < abs(literal_integer(place.node) or 0) < 2**31:
        wrong = NotKnown if literal_integer(place.node) is None else Invalid
        raise wrong(
            "element_at() takes a whole number from -2147483647 to 2147483647 other than 0 as a "
            "position, written as such: 1 is the first element, -1 the last; for a computed "
            "position, counted from 0, use get()"
        )


def result(
    function: Function, arguments: tuple[Parameter, ...], operands: Sequence[Operand]
) -> Typed:
    """The type of the call's result. All arguments have been checked."""
    reach = furthest(operand.typed for operand in operands)
    if function.name in _SHIFTING:
        reach = max(reach, Reach.NEAR)
    reads_iso = function.name == "to_date" and [o.typed.type for o in operands] == [types.STRING]
    if function.name == "timestamp_micros" or reads_iso:
        reach = Reach.ANYWHERE
    return Typed(_result_type(function, arguments, operands), reach)


def _result_type(
    function: Function, arguments: tuple[Parameter, ...], operands: Sequence[Operand]
) -> types.DataType:
    rule = function.result
    alike = [
        o.typed for a, o in zip(arguments, operands, strict=True) if a.kind in ("same", "alike")
    ]
    common = coercion.common_type(typed.type for typed in alike)
    if common is None:
        raise Invalid(f"{function.name}() mixes {mixed(alike)}; cast one of them")
    if isinstance(rule, types.DataType):
        return rule
    if rule == "same":
        return common
    first = operands[0].typed.type
    if rule == "remainder":
        return coercion.arithmetic_type("%", first, operands[1].typed.type)
    if rule in ("element", "part") and isinstance(first, types.Array):
        return first.element
    if isinstance(first, types.Map):
        return {"keys": types.Array(first.key), "values": types.Array(first.value)}.get(
            rule, first.value
        )
    if rule == "shift":
        return first if first == types.BIGINT else types.INT
    if rule == "round":
        scale = literal_integer(operands[1].node) if len(operands) > 1 else 0
        return coercion.rounded_type(first, scale or 0)
    return coercion.whole_type(first) if rule == "ceil" else first


def refusal(word: str) -> str | None:
    """Why a bare word such as ``current_date`` is not allowed; None if it is no refused
    function."""
    reason = REFUSED.get(word.lower())
    return f"{word} is not allowed: it {reason}" if reason else None
