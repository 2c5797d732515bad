"""Parts of nested values: fields of structs, elements of arrays, values of maps."""

from __future__ import annotations

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.typed import Handler, Typed, TypeOf, sql, with_article
from headgate.declaration.nearest import nearest


def field_of(typed: Typed, name: str) -> Typed:
    """A field of a struct; of an array of structs, the array of that field, as in Spark."""
    type_ = typed.type
    if isinstance(type_, types.Array) and isinstance(type_.element, types.Struct):
        element = field_of(Typed(type_.element, typed.reach), name)
        return Typed(types.Array(element.type), element.reach)
    if isinstance(type_, types.Map):
        raise Invalid(f"a map has no fields; write ['{name}']")
    if not isinstance(type_, types.Struct):
        raise Invalid(f"{with_article(type_)} has no field {name!r}")
    fields = dict(type_.fields)
    if name not in fields:
        message = f"there is no field {name!r} in {with_article(type_)}"
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
