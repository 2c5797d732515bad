"""The text of a double. Sources write it into records, and bronze writes it into texts and ids."""

from __future__ import annotations

from decimal import Decimal


def double_text(number: float) -> str:
    """A finite double as Java writes it: ``1.0E7``, with the fewest digits that identify it."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    first, *rest = map(str, digits)
    assert isinstance(exponent, int)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"
