"""The bare words that an expression may contain, apart from columns and calls.

This is a second check after the parser: sqlglot also accepts words of other databases, which Spark
refuses or reads differently.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.literals import (
    EXTRACTED,
    INTERVAL,
    TIME_UNITS,
    check_double,
    check_interval,
)
from headgate.declaration.expressions.tokens import Token, string_value
from headgate.declaration.expressions.typed import NotKnown
from headgate.declaration.names import nearest
from headgate.declaration.type_parser import scalar_type
from headgate.declaration.types import DECLARED, SYNONYMS

_TYPES = frozenset((*DECLARED, *SYNONYMS, "decimal", "dec", "numeric")) - {"bool"}
# Words that may stand before a string without a parenthesis between them.
_OPERATORS = ("and", "or", "not", "like", "ilike", "rlike", "regexp", "between", "div", "from")
_BEFORE_STRING = frozenset((*_OPERATORS, "when", "then", "else", "case"))
_BEFORE_STRING |= {"interval", "date", "timestamp"}
_OTHERS = frozenset(("distinct", "in", "is", "null", "true", "false", "end", "as"))
_UNITS = frozenset(unit.lower() for unit in (*TIME_UNITS, *EXTRACTED))
_UNIT_WORDS = _UNITS | {f"{unit}s" for unit in _UNITS}
KEYWORDS = _TYPES | _BEFORE_STRING | _OTHERS | _UNIT_WORDS
# A column of such a name can only be written in backquotes.
RESERVED_WORDS = (_BEFORE_STRING | _OTHERS) - {"date", "timestamp"}
# Words that sqlglot never reads as a column.
_NO_COLUMN = (
    "alter create cross drop except fetch for glob grant having inner insert intersect into join "
    "lateral minus notnull on outer partitioned_by qualify returning revoke rollback select "
    "serdeproperties tablesample uncache union using values where with xor"
)
_SUFFIXES = "syf"
_ONLY_IN_SPARK = ("<<", ">>", ">>>", "=>", ":")
_NO_COLUMNS = frozenset(_NO_COLUMN.split())


def check_columns(tokens: tuple[Token, ...], columns: Iterable[str]) -> None:
    """Raises Invalid for a column that must be written in backquotes, and is not."""
    named = {column for column in columns if column.lower() in _NO_COLUMNS}
    for before, token in zip((None, *tokens), tokens, strict=False):
        after_dot = before is not None and before.text == "."
        if token.kind == "word" and token.text in named and not after_dot:
            raise Invalid(f"the column {token.text!r} is written in backquotes: `{token.text}`")


def check_operators(tokens: tuple[Token, ...]) -> None:
    """Raises NotKnown for a token of Spark that sqlglot reads differently."""
    for token in tokens:
        is_suffixed = token.kind == "number" and token.lower[-1] in _SUFFIXES
        if is_suffixed or token.text in _ONLY_IN_SPARK:
            raise NotKnown(f"unexpected {token.text!r}")


def check_words(tokens: tuple[Token, ...], columns: Container[str]) -> None:
    """Raises NotKnown for a word that is not a keyword, a column, a field, a variable or a call."""
    variables = _variables(tokens)
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.kind == "number":
            _check_number(token)
        if before and before.kind == "word" and before.lower == "interval":
            _check_interval(tokens[index:])
        if token.kind != "word":
            continue
        if before and before.text == ".":
            if token.lower in RESERVED_WORDS:
                raise Invalid(f"the field {token.text!r} is written in backquotes")
            continue
        if before and (before.text == "::" or before.lower == "as") and token.lower not in _TYPES:
            scalar_type(token.text)
            raise NotKnown(f"{token.text!r} is not a type", nearest(token.lower, _TYPES))
        if after and after.kind in ("string", "raw") and token.lower not in _BEFORE_STRING:
            raise NotKnown(f"unexpected text after {token.text!r}")
        called = after is not None and after.text == "("
        known = called or token.text in columns or token.text in variables
        if not known and token.lower not in KEYWORDS:
            raise NotKnown(f"unexpected word {token.text!r}")


def _check_number(token: Token) -> None:
    digits = token.lower.rstrip("bdl")
    suffix = token.lower.removeprefix(digits)
    if suffix == "l" and not digits.isdecimal():
        raise Invalid(f"the number {token.text} is not whole; remove the L")
    if suffix == "l" and int(digits) >= 2**63:
        raise Invalid(f"the number {token.text} is too large for a bigint")
    if suffix == "d" or ("e" in digits and suffix != "bd"):
        check_double(digits)


def _check_interval(tokens: tuple[Token, ...]) -> None:
    """Checks what follows INTERVAL. The parser has found a number and a unit in it."""
    if tokens[0].text in ("-", "+"):
        tokens = tokens[1:]
    has_unit = len(tokens) > 1 and tokens[1].kind == "word" and tokens[1].lower in _UNIT_WORDS
    if tokens[0].kind == "string":
        check_interval(string_value(tokens[0]), has_unit=has_unit)
    elif not has_unit:
        raise NotKnown(INTERVAL)


def _variables(tokens: tuple[Token, ...]) -> set[str]:
    """The words before each arrow: one, or several in parentheses."""
    found: set[str] = set()
    for index, token in enumerate(tokens):
        at = index - 1
        if token.text != "->" or at < 0:
            continue
        found.add(tokens[at].text)
        while tokens[index - 1].text == ")" and at > 0 and tokens[at].text != "(":
            at -= 1
            found.add(tokens[at].text)
    return found


def quoted(column: str) -> str:
    """A column's name as an expression for Spark."""
    return f"`{column}`" if column.lower() in RESERVED_WORDS else column


def readable(column: str) -> str:
    """A column's name as an expression that is parsed again. ``quoted`` leaves more words bare, and
    digests depend on its text."""
    return f"`{column}`" if column.lower() in _NO_COLUMNS else quoted(column)
