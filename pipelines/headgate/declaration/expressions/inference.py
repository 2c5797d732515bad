"""The type of a parsed expression, found the way Spark 4.2 finds it.

A part of an expression is allowed if it has a handler. Everything else (subqueries, windows, stars,
aliases, hints) is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import calls
from headgate.declaration.expressions.arithmetic import ARITHMETIC, check_number
from headgate.declaration.expressions.conditions import CONDITIONS
from headgate.declaration.expressions.forms import FORMS
from headgate.declaration.expressions.functions import AGGREGATES
from headgate.declaration.expressions.literals import TIME_UNITS
from headgate.declaration.expressions.typed import (
    PLUS,
    Handler,
    NotKnown,
    Typed,
    TypeOf,
    sql,
    with_article,
)
from headgate.declaration.names import RESCUED, in_other_case, nearest
from headgate.declaration.types import VOID, DataType


def field_of(typed: Typed, name: str, of: str = "") -> Typed:
    """A field of a struct; of an array of structs, the array of that field, as in Spark. ``of`` is
    the struct as a message names it."""
    type_ = typed.type
    if isinstance(type_, types.Array) and isinstance(type_.element, types.Struct):
        element = field_of(Typed(type_.element, typed.reach), name, of)
        return Typed(types.Array(element.type), element.reach)
    if isinstance(type_, types.Map):
        raise Invalid(f"a map has no fields; write ['{name}']")
    if not isinstance(type_, types.Struct):
        raise Invalid(f"{with_article(type_)} has no field {name!r}")
    fields = dict(type_.fields)
    if name not in fields:
        message = f"there is no field {name!r} in {of or with_article(type_)}"
        raise Invalid(message, nearest(name, fields))
    return Typed(fields[name], typed.reach)


def _dot(node: exp.Expression, type_of: TypeOf) -> Typed:
    if not isinstance(node.expression, exp.Identifier):
        raise Invalid(f"{sql(node)} is not supported: a field name must follow the dot")
    return field_of(type_of(node.this), node.expression.name)


def _bracket(node: exp.Expression, type_of: TypeOf) -> Typed:
    typed = type_of(node.this)
    type_ = typed.type
    if len(node.expressions) != 1:
        raise Invalid("[ ] takes one position, or one key")
    (index,) = node.expressions
    if isinstance(type_, types.Map):
        if type_of(index).type != types.STRING:
            raise Invalid("the key in [ ] must be a string")
        return Typed(type_.value, typed.reach)
    if not isinstance(type_, types.Array):
        wanted = "an array and a position, or a map and a key"
        raise Invalid(f"[ ] takes {wanted}, not {with_article(type_)}")
    if type_of(index).type not in types.INTEGRALS:
        raise Invalid("the position in [ ] must be a whole number")
    return Typed(type_.element, typed.reach)


PARTS: dict[type, Handler] = {exp.Dot: _dot, exp.Bracket: _bracket}


Scope = Mapping[str, DataType | None]

_HANDLERS = {**ARITHMETIC, **CONDITIONS, **FORMS, **PARTS}
_REFUSED: dict[type, str] = {
    exp.Star: "*",
    exp.Window: "a window function (OVER)",
    exp.Alias: "an alias",
    exp.Lambda: "a lambda here",
    exp.Subquery: "a subquery",
    exp.Select: "a query",
    exp.Exists: "a subquery",
    exp.Filter: "FILTER",
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.Placeholder: "a parameter",
}


class Unresolved(Exception):
    """An operand whose own declaration is wrong. The error is reported there, and not again
    here."""


def infer(node: exp.Expression, scope: Scope) -> Typed:
    """The type of ``node`` over the columns of ``scope``. Raises Invalid with all that is wrong,
    Unresolved if it needs a column whose type is None, or NotKnown."""
    faults: list[Invalid | Unresolved] = []
    typed = _Inference(scope, {}, faults)(node)
    wrong = {
        fault.message: fault
        for fault in faults
        if isinstance(fault, Invalid) and not isinstance(fault, NotKnown)
    }
    if wrong:
        first, *others = wrong.values()
        raise Invalid(first.message, first.nearest, tuple(others))
    for fault in sorted(faults, key=lambda fault: isinstance(fault, NotKnown)):
        raise fault
    return typed


class _Inference:
    """Collects the faults of all parts. A part with a fault gets the type of null, which is valid
    everywhere, so that the other parts are checked too."""

    def __init__(
        self, scope: Scope, variables: Mapping[str, Typed], faults: list[Invalid | Unresolved]
    ) -> None:
        self._scope, self._variables, self._faults = scope, variables, faults

    def __call__(self, node: exp.Expression) -> Typed:
        before = len(self._faults)
        try:
            return self._type(node)
        except (Invalid, Unresolved) as fault:
            # An expression that contains a faulty part may seem wrong only because of that part.
            if len(self._faults) == before:
                self._faults.append(fault)
                for operand in _operands(node):
                    self(operand)
        return Typed(VOID)

    def within(self, variables: Mapping[str, Typed]) -> TypeOf:
        for name in variables:
            for known, what in ((self._scope, "a column"), (self._variables, "another variable")):
                if name in known or in_other_case(name, known):
                    raise Invalid(f"the variable {name!r} has the name of {what}; use another name")
        return _Inference(self._scope, {**self._variables, **variables}, self._faults)

    def _type(self, part: exp.Expression) -> Typed:
        typed = self._without_plus(part)
        if PLUS in part.meta:
            check_number(part, typed, "+")
        return typed

    def _without_plus(self, part: exp.Expression) -> Typed:
        if isinstance(part, exp.Column):
            return self._column(part)
        handler = _HANDLERS.get(type(part))
        if handler is None:
            refused = _REFUSED.get(type(part))
            if refused:
                raise Invalid(f"{refused} is not supported in an expression")
            raise NotKnown(f"{type(part).__name__.upper()} is not supported in an expression")
        return handler(part, self)

    def _column(self, node: exp.Column) -> Typed:
        """A column or a variable, with the fields that follow it."""
        first, *fields = node.parts
        if not all(isinstance(part, exp.Identifier) for part in node.parts):
            raise Invalid(f"{sql(node)} is not a column")
        typed = self._variables.get(first.name) or self._named(first)
        path = first.name
        for field in fields:
            typed = field_of(typed, field.name, path)
            path += f".{field.name}"
        return typed

    def _named(self, node: exp.Expr) -> Typed:
        scope = self._scope
        if node.name not in scope:
            path = _path_to(node.name, scope)
            reason = None if path or node.args.get("quoted") else calls.refusal(node.name)
            if node.name == RESCUED:
                reason = f"unknown column {RESCUED!r}: silver has it with unknown_fields: rescue"
            guess = path or nearest(node.name, [*self._variables, *scope])
            raise Invalid(reason or f"unknown column {node.name!r}", guess)
        type_ = scope[node.name]
        if type_ is None:
            raise Unresolved(node.name)
        return Typed(type_)


def _path_to(name: str, scope: Scope) -> str | None:
    """A field of a struct that has this name."""
    for column, type_ in scope.items():
        if isinstance(type_, types.Struct) and name in dict(type_.fields):
            return f"{column}.{name}"
    return None


def _operands(call: exp.Expression) -> list[exp.Expression]:
    """The arguments of a wrong call that are certainly expressions of this scope."""
    if not isinstance(call, exp.Anonymous) or call.name.lower() in AGGREGATES:
        return []
    named = (one.this if isinstance(one, exp.Alias) else one for one in call.expressions)
    known = (one for one in named if not isinstance(one, exp.Lambda))
    return [one for one in known if one.name.upper() not in TIME_UNITS]
