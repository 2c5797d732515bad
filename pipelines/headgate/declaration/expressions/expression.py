"""Spark SQL expressions of a declaration: checked, typed, and safe to run in Spark.

The text is tokenised strictly (`tokens.py`), parsed with sqlglot's Spark dialect, and typed by
walking the tree (`inference.py`). What these rules do not cover, Spark's analysis types
(`spark.py`). The result is deterministic, reads only the columns that it names, and cannot fail a
query, whatever a producer sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.bare_words import (
    check_columns,
    check_operators,
    check_words,
    quoted,
)
from headgate.declaration.expressions.hardening import check_length, harden, in_calendar
from headgate.declaration.expressions.inference import Scope, Unresolved, infer
from headgate.declaration.expressions.spark import analysed
from headgate.declaration.expressions.tokens import tokenize
from headgate.declaration.expressions.typed import (
    PLUS,
    SUFFIXED,
    NotKnown,
    Reach,
    shown,
    with_article,
)
from headgate.declaration.names import nearest
from headgate.declaration.types import BOOLEAN, VOID, DataType, is_nested


def _with_plus(parser: Any) -> Any:
    """What follows a plus that is no addition: sqlglot leaves out the plus."""
    node = parser._parse_unary()
    if node is not None:
        node.meta[PLUS] = True
    return node


def _with_type(parser: Any, node: Any, type_: Any) -> Any:
    """``node::type_``. sqlglot reads the number ``2L`` in the same way, with the type ``L``."""
    suffixed = parser._prev.text.upper() == "L"
    cast = parser.build_cast(strict=parser.STRICT_CAST, this=node, to=type_)
    if suffixed:
        cast.meta[SUFFIXED] = True
    return cast


class _Dialect(Spark):
    """Spark's grammar, in which every call stays as it is written: ``calls.py`` checks the names.
    No word begins a statement, so that ``comment is not null`` is about a column."""

    class Tokenizer(Spark.Tokenizer):
        COMMANDS: ClassVar[set[Any]] = set()
        KEYWORDS: ClassVar[dict[str, Any]] = {
            word: kind
            for word, kind in Spark.Tokenizer.KEYWORDS.items()
            if word not in ("ALL", "DESCRIBE")
        }

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in SparkParser.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST", "EXTRACT")
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **SparkParser.UNARY_PARSERS,
            TokenType.PLUS: _with_plus,
        }
        COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
            **SparkParser.COLUMN_OPERATORS,
            TokenType.DCOLON: _with_type,
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

        def _replace_lambda(
            self, node: exp.Expr | None, expressions: list[exp.Expr]
        ) -> exp.Expr | None:
            """Variables stay columns in the tree. The type inference knows which of them are
            variables."""
            return node

        def _parse_statement(self) -> exp.Expr | None:
            return self._parse_expression() or self._parse_select()


@dataclass(frozen=True)
class Expression:
    """``text`` is the SQL for Spark: as it is written, with a guard at each place where data could
    make Spark fail."""

    text: str
    type: DataType


def parse_expression(text: str, scope: Scope) -> Expression:
    """An expression over the columns of ``scope``. Raises Invalid with what is wrong, or Unresolved
    if it needs a column whose own declaration is wrong."""
    text = text.strip()
    tokens = tokenize(text)
    check_columns(tokens, scope)
    try:
        check_operators(tokens)
        typed = infer(_parse(text), scope)
        check_words(tokens, scope)
        hardened = harden(text)
    except RecursionError:
        raise Invalid("is nested too deeply") from None
    except NotKnown as unknown:
        typed, hardened = analysed(text, tokens, scope, unknown)
    if typed.type == VOID:
        raise Invalid("is always null; give it a type with cast(null as ...)")
    if typed.reach > Reach.CALENDAR:
        hardened = in_calendar(hardened, typed.type)
    check_length(hardened)
    return Expression(hardened, typed.type)


def parse_scalar(text: str, scope: Scope) -> Expression:
    """An expression whose values have no parts."""
    expression = parse_expression(text, scope)
    if is_nested(expression.type):
        raise Invalid(f"must be one value, not {shown(expression.type)}; take a part of it")
    return expression


def parse_column(name: str, scope: Scope) -> Expression:
    """A column of ``scope`` as an expression. Its values must have no parts."""
    if name not in scope:
        raise Invalid(f"there is no column {name!r}", nearest(name, scope))
    type_ = scope[name]
    if type_ is None:
        raise Unresolved(name)
    if is_nested(type_):
        raise Invalid(f"{name!r} must be one value, and is {shown(type_)}; take a part of it")
    return Expression(quoted(name), type_)


def parse_condition(text: str, scope: Scope) -> Expression:
    """An expression that must be boolean."""
    expression = parse_expression(text, scope)
    if expression.type != BOOLEAN:
        raise Invalid(f"must be a condition, not {with_article(expression.type)}")
    return expression


def _parse(text: str) -> exp.Expression:
    try:
        statements = sqlglot.parse(text, dialect=_Dialect)
    except ParseError as error:
        raise NotKnown(f"does not parse: {_first(error)}") from None
    except SqlglotError as error:
        raise NotKnown(f"does not parse: {str(error).splitlines()[0]}") from None
    except ArithmeticError:  # of sqlglot, for a number with a suffix at a wrong place
        raise Invalid("does not parse: a number stands where none can be") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Expression):
        raise Invalid("must be one expression")
    return statements[0]


def _first(error: ParseError) -> str:
    detail = error.errors[0] if error.errors else {}
    said = str(detail.get("description") or "unexpected text").rstrip(".")
    near = detail.get("highlight")
    if said.startswith("Required keyword"):  # the rest names classes of the parser
        return f"it is incomplete after {near!r}"
    return f"{said}, near {near!r}" if near else said
