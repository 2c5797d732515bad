"""The type of a parsed expression, found the way Spark 4.2 finds it.

A part of an expression is allowed when it has a handler; everything else (subqueries, windows,
lambdas, stars, aliases, hints) is refused for want of one.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import calls
from headgate.declaration.expressions.arithmetic import ARITHMETIC
from headgate.declaration.expressions.conditions import CONDITIONS
from headgate.declaration.expressions.forms import FORMS
from headgate.declaration.expressions.functions import AGGREGATES
from headgate.declaration.expressions.literals import TIME_UNITS
from headgate.declaration.expressions.typed import Typed, TypeOf, sql
from headgate.declaration.names import RESCUED
from headgate.declaration.nearest import nearest
from headgate.declaration.types import VOID, DataType

Scope = Mapping[str, DataType | None]

_HANDLERS = {**ARITHMETIC, **CONDITIONS, **FORMS}
_NAMES: dict[type, str] = {
    exp.Star: "*",
    exp.Window: "a window function (OVER)",
    exp.Alias: "an alias",
    exp.Lambda: "a lambda",
    exp.Subquery: "a subquery",
    exp.Select: "a query",
    exp.Exists: "a subquery",
    exp.Tuple: "a list",
    exp.Filter: "FILTER",
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.Escape: "ESCAPE",
    exp.Placeholder: "a parameter",
}


class Unresolved(Exception):
    """An operand whose own declaration is wrong: reported there, so nothing is said here."""


def infer(node: exp.Expression, scope: Scope) -> Typed:
    """The type of ``node`` over the columns of ``scope``. Raises Invalid with all that is wrong, or
    Unresolved where it needs a column whose type is None."""
    faults: list[Invalid | Unresolved] = []

    def type_of(part: exp.Expression) -> Typed:
        before = len(faults)
        try:
            return _type(part, scope, type_of)
        except (Invalid, Unresolved) as fault:
            # What holds a faulty part may seem wrong because of that part alone.
            if len(faults) == before:
                faults.append(fault)
                for operand in _operands(part):
                    type_of(operand)
        # Null fits everywhere, so the rest is looked at too.
        return Typed(VOID)

    typed = type_of(node)
    wrong = {fault.message: fault for fault in faults if isinstance(fault, Invalid)}
    if wrong:
        first, *others = wrong.values()
        raise Invalid(first.message, first.nearest, tuple(others))
    if faults:
        raise faults[0]
    return typed


def _operands(call: exp.Expression) -> list[exp.Expression]:
    """What is certainly an expression of this scope among the arguments of a wrong call."""
    if not isinstance(call, exp.Anonymous) or call.name.lower() in AGGREGATES:
        return []
    return [one for one in call.expressions if one.name.upper() not in TIME_UNITS]


def _type(part: exp.Expression, scope: Scope, type_of: TypeOf) -> Typed:
    if isinstance(part, exp.Column):
        return _column(part, scope)
    handler = _HANDLERS.get(type(part))
    if handler is None:
        name = _NAMES.get(type(part), type(part).__name__)
        raise Invalid(f"{name} is not supported in an expression")
    return handler(part, type_of)


def _column(node: exp.Column, scope: Scope) -> Typed:
    if node.args.get("table") or not isinstance(node.this, exp.Identifier):
        raise Invalid(f"{sql(node)} is not a column; nested fields come next")
    if node.name not in scope:
        reason = None if node.this.quoted else calls.refusal(node.name)
        if node.name == RESCUED:
            reason = f"unknown column {RESCUED!r}: silver has it with unknown_fields: rescue"
        raise Invalid(reason or f"unknown column {node.name!r}", nearest(node.name, scope))
    type_ = scope[node.name]
    if type_ is None:
        raise Unresolved(node.name)
    return Typed(type_)
