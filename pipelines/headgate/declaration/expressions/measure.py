"""Calls of measures in a declaration, such as ``sum(price) filter (where paid)``."""

from __future__ import annotations

from itertools import pairwise

from headgate.declaration.contracts.measure import MEASURES, MeasureFunction, measure_name
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_condition, parse_expression
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.tokens import Token, closing, commas, tokenize
from headgate.declaration.expressions.typed import shown
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.names import nearest
from headgate.declaration.types import is_nested

_RANKED = "count rows by the column in `by`, and order the counts in headgate query"
_INSTEAD = dict.fromkeys(("approx_top_k", "mode"), _RANKED)
"""What to do instead of aggregates that no measure is like."""
_SLIP = 3  # a misspelt name is longer or shorter by fewer letters than this


def parse_measure(name: str, text: str, scope: Scope) -> Measure:
    """The measure ``name``: ``function(arguments)`` or ``count(*)`` over the columns of ``scope``,
    which ``filter (where condition)`` may follow. Raises as ``parse_expression``."""
    text = text.strip()
    tokens = tokenize(text)
    function = _function(tokens)
    end = closing(tokens, 1)
    if end is None:
        raise Invalid("a parenthesis is never closed")
    condition = _filter(text, tokens, end + 1, scope)
    inner, kind = tokens[2:end], MEASURES[function]
    if kind.takes_rows and [token.text for token in inner] == ["*"]:
        return Measure(name, function, (), condition, kind.type_of(()))
    first = 1
    if inner and inner[0].lower == "distinct":
        if kind.distinct is None:
            raise Invalid(f"{function}(distinct ...) is not supported; only count(distinct ...) is")
        function, first = kind.distinct, 2
        kind = MEASURES[function]
    places = [first, *commas(tokens, 1)[0], end]
    parts = [tokens[at + 1 : to] for at, to in pairwise(places)]
    _check_count(function, kind, len(parts) if all(parts) else 0)
    arguments = tuple(_argument(function, kind, _text(text, part), scope) for part in parts)
    return Measure(name, function, arguments, condition, kind.type_of(arguments))


def usage(function: str) -> str:
    """How a measure is called, such as ``min_by(x, order)``."""
    return f"{function}({', '.join(MEASURES[function].takes)})"


def _check_count(function: str, kind: MeasureFunction, count: int) -> None:
    if count != (wanted := len(kind.takes)):
        arguments = "one argument" if wanted == 1 else f"{wanted} arguments"
        constant = f", with {kind.constant}" if kind.constant else ""
        raise Invalid(f"{function}() takes {arguments}, not {count}: {usage(function)}{constant}")


def _argument(function: str, kind: MeasureFunction, text: str, scope: Scope) -> MeasureArgument:
    expression = parse_expression(text, scope)
    if is_nested(expression.type) and not kind.takes_nested:
        raise Invalid(f"{function}() takes one value, not {shown(expression.type)}")
    return MeasureArgument(expression.text, expression.type)


def _filter(text: str, tokens: tuple[Token, ...], start: int, scope: Scope) -> str | None:
    """The condition of the filter that begins at index ``start``; None if nothing is there."""
    if start == len(tokens):
        return None
    if tokens[start].lower != "filter":
        raise Invalid("must be one measure and nothing around it; compute with measures in columns")
    opening, condition = tokens[start + 1 : start + 3], tokens[start + 3 : -1]
    begins = [token.lower for token in opening] == ["(", "where"]
    if not begins or not condition or closing(tokens, start + 1) != len(tokens) - 1:
        raise Invalid("a filter is written as: filter (where condition), and nothing follows it")
    return parse_condition(_text(text, condition), scope).text


def _text(text: str, part: tuple[Token, ...]) -> str:
    return text[part[0].start : part[-1].end]


def _function(tokens: tuple[Token, ...]) -> str:
    first = tokens[0].lower
    is_call = len(tokens) > 1 and tokens[1].text == "(" and tokens[0].kind == "word"
    found = measure_name(first)
    if is_call and found is not None:
        return found
    names = MEASURES.names()
    if is_call:
        if first in _INSTEAD:
            raise Invalid(f"{first}() is not a measure: {_INSTEAD[first]}")
        # mode() is not a misspelt mean().
        similar = [name for name in names if abs(len(name) - len(first)) < _SLIP]
        likely = (name for name in names if first in MEASURES[name].also_called)
        guess = next(likely, None) or nearest(first, similar)
        known = "" if guess else f"; the measures are {', '.join(names)}"
        raise Invalid(f"{first}() is not a measure{known}", guess)
    if found is not None:
        rows = MEASURES[found].takes_rows
        raise Invalid("a measure is a call", f"{found}(*)" if rows else f"{found}(...)")
    raise Invalid(f"must be one of {', '.join(names)} over an expression, such as sum(price)")
