"""Names for parts of an SQL expression."""

from __future__ import annotations


def let(variable: str, value: str, body: str) -> str:
    """``body``, in which ``variable`` stands for ``value``, which is computed once."""
    # After the word array, Spark does not read >> as an operator.
    return f"transform(array_repeat({value}, 1), {variable} -> {body})[0]"
