"""Types of CASE, CAST, EXTRACT and function calls."""

from __future__ import annotations

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import calls
from headgate.declaration.expressions.arguments import check_configuring, check_operand
from headgate.declaration.expressions.coercion import common_type
from headgate.declaration.expressions.conditions import check_widened, compare
from headgate.declaration.expressions.lambdas import LAMBDA_CALLS
from headgate.declaration.expressions.literals import EXTRACTED, check_time_literal
from headgate.declaration.expressions.typed import (
    Handler,
    NotKnown,
    Reach,
    Typed,
    TypeOf,
    furthest,
    given,
    literal_text,
    mixed,
    sql,
    with_article,
)
from headgate.declaration.nearest import nearest
from headgate.declaration.type_parser import scalar_type


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
