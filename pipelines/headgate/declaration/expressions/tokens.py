"""The tokens of an expression, read more strictly than Spark reads them.

Spark and sqlglot find the same tokens only in a text without comments, unusual escapes, adjacent
strings and substitutions. These are refused here, so that Spark runs what was checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.declaration.errors import Invalid

MAX_LENGTH = 8_000
_LONGEST_NUMBER = 2_000  # characters: Python does not read integers of more than 4,300
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<comment>--|/\*|\*/)
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LDSYF])?(?![A-Za-z0-9_.]))
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[^`]*`)
    |(?P<operator><=>|<<|>>>?|=>|->|==|<>|!=|<=|>=|\|\||::|[-+*/%<>=!(),\[\].~&|^:])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# The escapes that Spark and sqlglot read in the same way.
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}

# Two tokens that sqlglot, but not Spark, reads as if nothing were missing between them.
_EMPTY = ("(,", "[,", ",,", ",)", ",]")


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def lower(self) -> str:
        return self.text.lower()


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of ``text`` without spaces. Raises Invalid for text that Spark and sqlglot read
    differently."""
    if len(text) > MAX_LENGTH:
        raise Invalid(f"is longer than {MAX_LENGTH} characters")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise Invalid(_stray(text, at))
        token = Token(found.lastgroup, found.group(), at)
        at = found.end()
        if token.kind != "space":
            _check(token, tokens[-1] if tokens else None)
            tokens.append(token)
    if not tokens:
        raise Invalid("is empty")
    return tuple(tokens)


def canonical(text: str) -> str:
    """``text`` with single spaces between tokens: layout is not part of its meaning."""
    return " ".join(token.text for token in tokenize(text))


def string_value(token: Token) -> str:
    """The value of a string token."""
    if token.kind == "raw":
        return token.text[2:-1]
    return _ESCAPE.sub(lambda found: _ESCAPES[found[1]], token.text[1:-1])


def closing(tokens: tuple[Token, ...], opening: int) -> int | None:
    """The index of the parenthesis that closes the one at index ``opening``."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index
    return None


def commas(tokens: tuple[Token, ...], opening: int) -> tuple[list[int], int]:
    """The indexes of the commas between a call's arguments, and of its closing parenthesis. The
    parenthesis at index ``opening`` must be closed."""
    end = closing(tokens, opening) or len(tokens) - 1
    found, depth = [], 0
    for index in range(opening, end):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[index].text, 0)
        if tokens[index].text == "," and depth == 1:
            found.append(index)
    return found, end


def _stray(text: str, at: int) -> str:
    if text[at] in "'\"`":
        return f"the quote at column {at + 1} is never closed"
    if text[at] == ";":
        return "holds a ';': one expression only"
    return f"unexpected {text[at : at + 1]!r} at column {at + 1}"


def _check(token: Token, before: Token | None) -> None:
    if token.kind == "comment":
        raise Invalid("comments are not allowed inside an expression; use a YAML comment")
    if token.kind == "number" and len(token.text) > _LONGEST_NUMBER:
        raise Invalid(f"a number of {len(token.text):,} characters is too long")
    if before and f"{before.text}{token.text}" in _EMPTY:
        raise Invalid(f"a value is missing between {before.text} and {token.text}")
    is_text = token.kind in ("string", "raw")
    if is_text and before and before.kind in ("string", "raw"):
        raise Invalid("two strings stand side by side; join them with ||")
    if token.kind == "string":
        for escape in _ESCAPE.findall(token.text):
            if escape not in _ESCAPES:
                meant = f"\\\\{escape}"
                raise Invalid(f"SQL drops the backslash of \\{escape}; write {meant} or r'...'")
    if token.text == "(" and before and before.kind == "quoted":
        raise Invalid("the name of a function is written without backquotes")
    if is_text and "${" in token.text:
        raise Invalid("holds ${, which Spark would substitute")
