"""The bare words that an expression may contain, apart from columns and calls.

This is a second check after the parser: sqlglot also accepts words of other databases, which Spark
refuses or reads differently.
"""

from __future__ import annotations

from collections.abc import Container

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.literals import EXTRACTED, TIME_UNITS
from headgate.declaration.expressions.tokens import Token
from headgate.declaration.nearest import nearest
from headgate.declaration.type_parser import scalar_type
from headgate.declaration.types import DECLARED, SYNONYMS

_TYPES = frozenset((*DECLARED, *SYNONYMS, "decimal", "dec", "numeric")) - {"bool"}
# Words that may stand before a string without a parenthesis between them.
_OPERATORS = ("and", "or", "not", "like", "ilike", "rlike", "regexp", "between", "div", "from")
_BEFORE_STRING = frozenset((*_OPERATORS, "when", "then", "else", "case"))
_BEFORE_STRING |= {"interval", "date", "timestamp"}
_OTHERS = frozenset(("distinct", "in", "is", "null", "true", "false", "end", "as"))
_UNITS = frozenset(unit.lower() for unit in (*TIME_UNITS, *EXTRACTED))
KEYWORDS = _TYPES | _BEFORE_STRING | _OTHERS | _UNITS | {f"{unit}s" for unit in _UNITS}
# A column of such a name can only be written in backquotes.
RESERVED_WORDS = (_BEFORE_STRING | _OTHERS) - {"date", "timestamp"}


def check_words(tokens: tuple[Token, ...], columns: Container[str]) -> None:
    """Raises Invalid for a word that is not a keyword, a column, a field, a variable or a call."""
    variables = _variables(tokens)
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.kind == "number" and token.lower.endswith("l") and int(token.text[:-1]) >= 2**63:
            raise Invalid(f"the number {token.text} is too large for a bigint")
        if token.kind != "word":
            continue
        if before and before.text == ".":
            if token.lower in RESERVED_WORDS:
                raise Invalid(f"the field {token.text!r} is written in backquotes")
            continue
        if before and (before.text == "::" or before.lower == "as") and token.lower not in _TYPES:
            scalar_type(token.text)
            raise Invalid(f"{token.text!r} is not a type", nearest(token.lower, _TYPES))
        if after and after.kind in ("string", "raw") and token.lower not in _BEFORE_STRING:
            raise Invalid(f"unexpected text after {token.text!r}")
        called = after is not None and after.text == "("
        known = called or token.text in columns or token.text in variables
        if not known and token.lower not in KEYWORDS:
            raise Invalid(f"unexpected word {token.text!r}")


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
    """A column's name as an expression."""
    return f"`{column}`" if column.lower() in RESERVED_WORDS else column
