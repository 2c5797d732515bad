"""Guards around calls that read a time by a pattern.

Java reads a year such as ``+999999999``, and Spark then overflows and stops. So the text is
matched first: ``to_date(x, p)`` runs as ``to_date(if(x rlike r, x, null), p)``.
"""

from __future__ import annotations

from headgate.spec.patterns import reading_regex
from headgate.spec.tokens import Token, closing, string_value, tokenize

_READERS = ("to_date", "to_timestamp")


def harden(text: str, tokens: tuple[Token, ...]) -> str:
    """``text`` with a guard in each call that reads by a pattern; any other text as it is."""
    for index in range(len(tokens) - 1, 0, -1):
        if tokens[index - 1].lower in _READERS and tokens[index].text == "(":
            text = _guarded(text, index)
    return text


def _guarded(text: str, opening: int) -> str:
    """Calls are guarded from the last to the first, so the tokens before one never move."""
    tokens = tokenize(text)
    end = closing(tokens, opening)
    comma = _second_argument(tokens, opening, end)
    if end is None or comma is None:
        return text
    value = text[tokens[opening].end : tokens[comma].start].strip()
    pattern = string_value(tokens[comma + 1])
    guard = f"if({value} rlike r'{reading_regex(pattern)}', {value}, null)"
    return text[: tokens[opening].end] + guard + text[tokens[comma].start :]


def _second_argument(tokens: tuple[Token, ...], opening: int, end: int | None) -> int | None:
    depth = 0
    for index in range(opening, end or opening):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[index].text, 0)
        if tokens[index].text == "," and depth == 1:
            return index
    return None
