"""Types of CASE, CAST, EXTRACT and function calls, and which arguments a call may have."""

from __future__ import annotations

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import calls
from headgate.declaration.expressions.coercion import common_type
from headgate.declaration.expressions.conditions import check_widened, compare
from headgate.declaration.expressions.functions import Function, Parameter
from headgate.declaration.expressions.lambdas import LAMBDA_CALLS
from headgate.declaration.expressions.literals import (
    EXTRACTED,
    LITERAL_KINDS,
    TIME_UNITS,
    check_literal,
    check_time_literal,
)
from headgate.declaration.expressions.typed import (
    Handler,
    NotKnown,
    Reach,
    Typed,
    TypeOf,
    furthest,
    given,
    literal_integer,
    literal_text,
    mixed,
    sql,
    with_article,
)
from headgate.declaration.names import nearest
from headgate.declaration.type_parser import scalar_type

# Literals that a computed text may stand for. A regular expression or a pattern of times may not.
_MAY_BE_COMPUTED = ("short", "replacement", "path", "key", "zone")


def check_configuring(function: Function, argument: Parameter, node: exp.Expression) -> bool:
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


def check_operand(function: Function, argument: Parameter, typed: Typed) -> None:
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


def _case(node: exp.Expression, type_of: TypeOf) -> Typed:
    results: list[Typed] = []
    for branch in node.args["ifs"]:
        if node.this:
            compare(node.this, branch.this, type_of)
        elif type_of(branch.this).type != types.BOOLEAN:
            raise Invalid(f"WHEN takes a condition, and {sql(branch.this)} is not one")
        results.append(type_of(branch.args["true"]))
    if node.args.get("default"):
        results.append(type_of(node.args["default"]))
    common = common_type(typed.type for typed in results)
    if common is None:
        raise Invalid(f"CASE mixes {mixed(results)}; cast one of them")
    check_widened(results)
    return Typed(common, furthest(results))


def _cast(node: exp.Expression, type_of: TypeOf) -> Typed:
    if given(node) - {"this", "to", "safe"}:
        raise NotKnown("this form of CAST is not supported")
    target = _target(node.args["to"].sql("spark"))
    text = literal_text(node.this)
    if types.is_time(target) and text is not None:
        check_time_literal(target, text)
        return Typed(target)
    typed = type_of(node.this)
    if types.is_time(target) and typed.type == types.STRING and calls.is_constant(node.this):
        raise Invalid(f"a constant {target} is written as a literal: {target} '2026-01-31'")
    if target == types.TIMESTAMP and typed.type == types.DATE and not typed.bounded:
        raise NotKnown("a date made from text could overflow as a timestamp; cast the text to it")
    if target == types.TIMESTAMP and typed.type == types.STRING:
        # Spark reads '12:30' as a time of today.
        raise Invalid(
            "text is read as a timestamp by to_timestamp", f"to_timestamp({sql(node.this)})"
        )
    if not _castable(typed.type, target):
        wrong = NotKnown if types.is_nested(typed.type) else Invalid
        raise wrong(f"{with_article(typed.type)} cannot be cast to {target}")
    made = types.is_time(target) and not types.is_time(typed.type)
    return Typed(target, Reach.ANYWHERE if made else typed.reach)


def _target(text: str) -> types.DataType:
    try:
        return scalar_type(text)
    except Invalid as error:
        raise NotKnown(error.message, error.nearest) from None


def _castable(source: types.DataType, target: types.DataType) -> bool:
    if types.is_nested(source):
        return False
    if source in (types.STRING, types.VOID, target) or target == types.STRING:
        return True
    if types.is_time(target):
        return types.is_time(source) or (target == types.TIMESTAMP and types.is_number(source))
    if target == types.BOOLEAN:
        return types.is_number(source)
    return source != types.DATE


def _extract(node: exp.Expression, type_of: TypeOf) -> Typed:
    part = node.name.upper()
    if part not in EXTRACTED:
        raise NotKnown(f"EXTRACT cannot give {part.lower()}", nearest(part, EXTRACTED))
    typed = type_of(node.expression)
    of_day = part in ("HOUR", "MINUTE")
    wanted = (types.TIMESTAMP,) if of_day else (types.TIMESTAMP, types.DATE)
    if typed.type not in wanted:
        names, given_ = " or ".join(map(str, wanted)), with_article(typed.type)
        raise Invalid(f"EXTRACT takes a {names}, not {given_}")
    return Typed(types.INT)


def _call(node: exp.Expression, type_of: TypeOf) -> Typed:
    function = calls.find_function(str(node.this))
    if function.name in LAMBDA_CALLS:
        return LAMBDA_CALLS[function.name](node, type_of)
    arguments = calls.arguments_for(function, len(node.expressions))
    operands: list[calls.Operand] = []
    for argument, operand in zip(arguments, node.expressions, strict=True):
        if check_configuring(function, argument, operand):
            operands.append(calls.Operand(operand, Typed(types.INT)))
        else:
            typed = type_of(operand)
            check_operand(function, argument, typed)
            operands.append(calls.Operand(operand, typed))
    if any(argument.kind in ("same", "alike") for argument in arguments):
        check_widened(operand.typed for operand in operands)
    calls.check_together(function, operands)
    return calls.result(function, arguments, operands)


FORMS: dict[type, Handler] = {
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Anonymous: _call,
}
