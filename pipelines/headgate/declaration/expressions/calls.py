"""Function calls: whether the arguments fit, and the type of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import coercion
from headgate.declaration.expressions.functions import (
    AGGREGATES,
    REFUSED,
    Argument,
    Function,
    functions,
)
from headgate.declaration.expressions.literals import LITERAL_KINDS, TIME_UNITS, check_literal
from headgate.declaration.expressions.spark_functions import SPARK_FUNCTIONS
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
from headgate.declaration.measures import measure_of
from headgate.declaration.nearest import nearest
from headgate.declaration.patterns import group_count

_MOVING = ("date_add", "dateadd", "date_sub", "add_months", "next_day", "trunc", "date_trunc")
# Their results may be outside the calendar, but not far. (An offset that is read shifts a time,
# too.)
_SHIFTING = frozenset(
    (*_MOVING, "from_utc_timestamp", "to_utc_timestamp", "to_timestamp", "to_date")
)
# Literals that a computed text may stand for. A regular expression or a pattern of times may not.
_MAY_BE_COMPUTED = ("short", "replacement", "path", "key", "zone")
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
    if measure_of(lower) is not None:
        raise Invalid(f"{lower}() is a measure: it belongs under measures")
    if lower in AGGREGATES:
        raise Invalid(f"{lower}() is an aggregate that is not supported")
    if lower in REFUSED:
        raise Invalid(f"the function {lower}() is not allowed: it {REFUSED[lower]}")
    if lower in SPARK_FUNCTIONS:
        raise NotKnown(f"Spark's analysis has to check {lower}()")
    guess = nearest(lower, functions()) or nearest(lower, SPARK_FUNCTIONS)
    raise Invalid(f"unknown function {name}()", guess)


def arguments_for(function: Function, count: int) -> tuple[Argument, ...]:
    """The declarations of ``count`` given arguments. Raises Invalid for a wrong count."""
    declared = list(function.arguments)
    if declared and declared[-1].repeated:
        declared += [declared[-1]] * (count - len(declared))
    least = sum(not (a.optional or a.repeated) for a in declared)
    if not least <= count <= len(declared):
        raise NotKnown(f"{function.name}() takes {function.usage}, not {count}")
    return tuple(declared[:count])


def check_configuring(function: Function, argument: Argument, node: exp.Expression) -> bool:
    """Checks an argument that must be a literal. Returns False for an argument that may be any
    expression."""
    kind, _, rest = argument.kind.partition(":")
    try:
        if kind == "int":
            _check_integer(rest, node)
        elif kind == "oneof":
            _check_one_of(rest.split("|"), node)
        elif kind == "flag":
            _check_flag(node)
        elif kind == "unit":
            _check_unit(node)
        elif kind in LITERAL_KINDS:
            text = literal_text(node)
            if text is None:
                wrong = NotKnown if kind in _MAY_BE_COMPUTED else Invalid
                raise wrong("an argument must be a literal text here")
            check_literal(kind, text)
        else:
            return False
    except Invalid as error:
        raise type(error)(f"{function.name}(): {error.message}", error.nearest) from None
    return True


def _check_integer(bounds: str, node: exp.Expression) -> None:
    low, high = map(int, bounds.split(":"))
    value = literal_integer(node)
    if value is None or not low <= value <= high:
        raise NotKnown(f"an argument must be a whole number here, {low} to {high}")


def _check_one_of(choices: list[str], node: exp.Expression) -> None:
    integer = literal_integer(node)
    given = str(integer) if integer is not None else literal_text(node)
    if given is None or given.upper() not in choices:
        guess = nearest(given or "", choices)
        raise NotKnown(f"an argument must be one of {', '.join(choices)}", guess)


def _check_flag(node: exp.Expression) -> None:
    if not isinstance(node, exp.Boolean):
        raise NotKnown("an argument must be true or false here")


def _check_unit(node: exp.Expression) -> None:
    name = node.name.upper() if isinstance(node, exp.Column) else ""
    if name not in TIME_UNITS:
        units = ", ".join(TIME_UNITS)
        raise NotKnown(f"the first argument is a unit: {units}", nearest(name, TIME_UNITS))


def check_operand(function: Function, argument: Argument, typed: Typed) -> None:
    """Raises Invalid unless a value of this type may be passed."""
    type_, kind = typed.type, argument.kind
    if type_ == types.VOID or _fits(kind, typed):
        return
    wanted = {"time": "date or timestamp", "time_or_string": "string", "integral": "whole number"}
    name = wanted.get(kind.rstrip("!"), kind.rstrip("!"))
    if types.is_time(type_) and not typed.bounded:
        raise NotKnown(
            f"{function.name}() takes a {name} that cannot overflow, and this one is made from "
            "text or numbers; make it a silver column, and use it in gold"
        )
    remedy = "" if types.is_nested(type_) or kind in _IN_WORDS else _remedy(kind, type_)
    name = _IN_WORDS.get(kind, f"a {name}")
    is_narrower = types.is_nested(type_) and kind not in _CONTAINERS
    is_narrower = is_narrower or (function.name in _ALSO_OF_TEXT and type_ == types.STRING)
    wrong = NotKnown if is_narrower or kind in _NESTED else Invalid
    raise wrong(f"{function.name}() takes {name}, not {with_article(type_)}{remedy}")


def _fits(kind: str, typed: Typed) -> bool:
    type_ = typed.type
    widened = type_ == types.DATE and typed.bounded
    return {
        "number": types.is_number(type_),
        "integral": type_ in types.INTEGRALS,
        "array": isinstance(type_, types.Array),
        "map": isinstance(type_, types.Map),
        "array_or_map": isinstance(type_, types.Array | types.Map),
        "texts": type_ == types.Array(types.STRING),
        "plain": isinstance(type_, types.Array) and not types.is_nested(type_.element),
        "sortable": isinstance(type_, types.Array) and not types.has_map(type_),
        "scalar": not types.is_nested(type_),
        "same": not types.is_nested(type_),
        **dict.fromkeys(("any", "alike", "member", "place"), True),
        "time": types.is_time(type_),
        "time!": types.is_time(type_) and typed.bounded,
        "timestamp!": type_ == types.TIMESTAMP and typed.bounded,
        "timestamp": type_ == types.TIMESTAMP or widened,
        "time_or_string": type_ in (types.STRING, types.TIMESTAMP) or widened,
    }.get(kind, type_ == types.DECLARED.get(kind))


# Spark's functions of these take other types, too.
_NESTED = ("plain", "sortable", "texts")
_ALSO_OF_TEXT = ("unix_timestamp", "to_unix_timestamp")
_CONTAINERS = ("array", "map", "array_or_map")
_IN_WORDS = {
    "same": "one value",
    "scalar": "one value",
    "array": "an array",
    "map": "a map",
    "array_or_map": "an array or a map",
    "texts": "an array of strings",
    "plain": "an array of values without parts",
    "sortable": "an array of values without maps",
}


def _remedy(kind: str, given: types.DataType) -> str:
    if kind.startswith("time") and given == types.STRING:
        return "; write to_timestamp(...)"
    kinds = {"number": "double", "integral": "bigint", "time": "timestamp", "time!": "timestamp"}
    type_ = kinds.get(kind, "string" if kind == "time_or_string" else kind.rstrip("!"))
    return f"; write cast(... as {type_})"


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
    function: Function, arguments: tuple[Argument, ...], operands: Sequence[Operand]
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
    function: Function, arguments: tuple[Argument, ...], operands: Sequence[Operand]
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
