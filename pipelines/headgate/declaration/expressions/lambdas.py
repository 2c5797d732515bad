"""Functions that apply a lambda to the elements of an array.

The cost of a call must depend on the size of the record alone. So a lambda cannot read an array or
a map from outside of it, the accumulator of ``aggregate`` cannot grow, and the result of
``transform`` for an element is not much larger than the element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from headgate.declaration import types
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.bare_words import KEYWORDS
from headgate.declaration.expressions.calls import arguments_for
from headgate.declaration.expressions.conditions import is_boolean
from headgate.declaration.expressions.functions import functions
from headgate.declaration.expressions.typed import (
    Reach,
    Typed,
    TypeOf,
    literal_text,
    sql,
    with_article,
)

MOST_TEXT = 64
"""The maximum number of characters of text literals in a lambda of ``transform`` that returns
text."""
_PADDING = ("lpad", "rpad")


def _condition(node: exp.Expression, type_of: TypeOf) -> Typed:
    """``exists`` and ``forall``."""
    array, body = _arguments(node)
    element, _ = _element(node, type_of(array))
    _check_condition(node, body, type_of, [element])
    return Typed(types.BOOLEAN)


def _filter(node: exp.Expression, type_of: TypeOf) -> Typed:
    array, body = _arguments(node)
    typed = type_of(array)
    element, index = _element(node, typed)
    _check_condition(node, body, type_of, [element, index])
    return typed


def _transform(node: exp.Expression, type_of: TypeOf) -> Typed:
    array, body = _arguments(node)
    element, index = _element(node, type_of(array))
    inside, typed = _apply(node, body, type_of, [element, index])
    if typed.type == types.VOID:
        raise Invalid("transform(): the lambda is always null")
    if not _is_small(typed.type):
        _check_growth(body, inside)
    return Typed(types.Array(typed.type), typed.reach)


def _aggregate(node: exp.Expression, type_of: TypeOf) -> Typed:
    name = node.name.lower()
    array, start, body, *rest = _arguments(node)
    element, _ = _element(node, type_of(array))
    first = type_of(start)
    if not _is_small(first.type):
        raise Invalid(
            f"{name}() starts with a number, a boolean or a time, not with "
            f"{with_article(first.type)}, which could grow with every element"
        )
    _, merged = _apply(node, body, type_of, [first, element])
    if merged.reach > first.reach:
        # The lambda may shift the time once per element, so the result may be any time.
        first = Typed(first.type, Reach.ANYWHERE)
        _, merged = _apply(node, body, type_of, [first, element])
    if merged.type != first.type:
        raise Invalid(
            f"{name}() starts with {with_article(first.type)}, but the lambda returns "
            f"{with_article(merged.type)}; write cast(... as {first.type}) around what follows "
            "->, or change the start"
        )
    if not rest:
        return Typed(first.type, merged.reach)
    _, last = _apply(node, rest[0], type_of, [Typed(first.type, merged.reach)])
    return last


LAMBDA_CALLS: dict[str, Callable[[exp.Expression, TypeOf], Typed]] = {
    "exists": _condition,
    "forall": _condition,
    "filter": _filter,
    "transform": _transform,
    "aggregate": _aggregate,
    "reduce": _aggregate,
}


def _arguments(node: exp.Expression) -> Sequence[exp.Expression]:
    function = functions()[node.name.lower()]
    given = node.expressions
    for argument, one in zip(arguments_for(function, len(given)), given, strict=True):
        if (argument.kind == "lambda") != isinstance(one, exp.Lambda):
            wanted = "a lambda such as x -> x > 0" if argument.kind == "lambda" else "a value"
            raise Invalid(f"{function.name}() takes {wanted}, not {sql(one)}")
    return given


def _element(node: exp.Expression, array: Typed) -> tuple[Typed, Typed]:
    """The element of the array, and its index."""
    if not isinstance(array.type, types.Array):
        raise Invalid(f"{node.name.lower()}() takes an array, not {with_article(array.type)}")
    return Typed(array.type.element, array.reach), Typed(types.INT)


def _check_condition(
    node: exp.Expression, body: exp.Expression, type_of: TypeOf, variables: Sequence[Typed]
) -> None:
    _, typed = _apply(node, body, type_of, variables)
    if not is_boolean(typed):
        said = f"takes a condition after ->, and {sql(body.this)} is {with_article(typed.type)}"
        raise Invalid(f"{node.name.lower()}() {said}")


def _apply(
    node: exp.Expression, body: exp.Expression, type_of: TypeOf, variables: Sequence[Typed]
) -> tuple[TypeOf, Typed]:
    """The types inside a lambda, and the type of its result. A lambda may leave out the last of two
    variables, except in ``aggregate``."""
    names = [_variable(part) for part in body.expressions]
    least = len(variables) if node.name.lower() in ("aggregate", "reduce") else 1
    if not least <= len(names) <= len(variables):
        count = f"{len(names)} variable{'' if len(names) == 1 else 's'}"
        raise Invalid(f"{node.name.lower()}(): {sql(body)} has {count}, not {len(variables)}")
    if len({name.lower() for name in names}) < len(names):
        raise Invalid(f"the variables of {sql(body)} have the same name")
    inside = type_of.within(dict(zip(names, variables, strict=False)))
    typed = inside(body.this)
    for column in _from_outside(body):
        if types.is_nested(type_ := inside(column).type):
            raise Invalid(
                f"{sql(column)} is {with_article(type_)} from outside of the lambda: "
                "it would be scanned for every element"
            )
    return inside, typed


def _variable(node: exp.Expression) -> str:
    name = node.name
    if not isinstance(node, exp.Identifier) or node.args.get("quoted") or name.lower() in KEYWORDS:
        raise Invalid(f"{sql(node)} cannot name a variable of a lambda; use another name")
    return name


def _from_outside(body: exp.Expression) -> list[exp.Column]:
    """The columns, and variables of outer lambdas, that a lambda reads."""
    own = {name.name for part in body.find_all(exp.Lambda) for name in part.expressions}
    return [column for column in body.this.find_all(exp.Column) if column.parts[0].name not in own]


def _is_small(type_: types.DataType) -> bool:
    """Whether all values of the type have about the same size."""
    return types.is_number(type_) or types.is_time(type_) or type_ == types.BOOLEAN


def _check_growth(body: exp.Expression, inside: TypeOf) -> None:
    for column in _from_outside(body):
        if not _is_small(inside(column).type):
            raise Invalid(
                f"transform() would copy {sql(column)} into every element; "
                "build text only from the element"
            )
    calls = (call.name.lower() for call in body.this.find_all(exp.Anonymous))
    texts = sum(
        len(literal_text(part) or "") for part in body.this.find_all(exp.Literal, exp.RawString)
    )
    if texts > MOST_TEXT or any(name in _PADDING for name in calls):
        raise Invalid(
            "transform() cannot pad text, and can have at most "
            f"{MOST_TEXT} characters of it: text is repeated for every element"
        )
