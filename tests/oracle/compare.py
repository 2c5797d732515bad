"""Compares two sets of rows by key, with all columns, and describes the differences in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

RELATIVE = 1e-9
MAX_LINES = 20
ABSENT = "(no such column)"
PLAIN = {type(None), bool, int, str, bytes, Decimal, datetime}
"""Types of which equal values need no normalization: a shortcut for most values."""


def compare(
    expected_rows: Iterable[Mapping[str, Any]],
    actual_rows: Iterable[Mapping[str, Any]],
    key: Sequence[str],
    within: Mapping[str, float] | None = None,
) -> list[str]:
    """Differences in words, at most 20 lines; empty if the rows are equal.

    Every column of an expected row is compared; an actual row may have more columns. Decimals and
    integers must be equal, floats within 1e-9 relative, times as aware instants. ``within`` gives a
    column another relative error, for an approximate measure.
    """
    lines: list[str] = []
    expected = indexed(expected_rows, key, "expected", lines)
    actual = indexed(actual_rows, key, "actual", lines)
    for at in sorted({**expected, **actual}, key=sortable):
        name = ", ".join(f"{column}={shown(part)}" for column, part in zip(key, at, strict=True))
        if at not in actual:
            lines.append(f"missing: {name}")
        elif at not in expected:
            lines.append(f"unexpected: {name}")
        else:
            lines += differences(name, expected[at], actual[at], within or {})
    hidden = len(lines) - MAX_LINES + 1
    return [*lines[: MAX_LINES - 1], f"and {hidden} more"] if hidden > 1 else lines


def indexed(
    rows: Iterable[Mapping[str, Any]], key: Sequence[str], side: str, lines: list[str]
) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    index: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        at = tuple(normal(row.get(column, ABSENT)) for column in key)
        if at in index:
            lines.append(f"twice in {side}: {', '.join(shown(part) for part in at)}")
        index[at] = row
    return index


def differences(
    name: str, expected: Mapping[str, Any], actual: Mapping[str, Any], within: Mapping[str, float]
) -> list[str]:
    pairs = ((column, expected[column], actual.get(column, ABSENT)) for column in expected)
    return [
        f"{name}: {column} is {shown(found)}, expected {shown(wanted)}"
        for column, wanted, found in pairs
        if not equal(wanted, found, within.get(column, RELATIVE), column in within)
    ]


def equal(wanted: Any, found: Any, relative: float, approximate: bool) -> bool:
    if type(wanted) is type(found) and type(wanted) in PLAIN and wanted == found:
        return True
    wanted, found = normal(wanted), normal(found)
    if wanted is None or found is None or isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, (tuple, list)) and isinstance(found, (tuple, list)):
        pairs = zip(wanted, found, strict=False)
        same = all(equal(one, other, relative, approximate) for one, other in pairs)
        return same and len(wanted) == len(found)
    numbers = isinstance(wanted, (int, float)) and isinstance(found, (int, float))
    if numbers and (approximate or isinstance(wanted, float) or isinstance(found, float)):
        both_nan = math.isnan(wanted) and math.isnan(found)
        return both_nan or math.isclose(wanted, found, rel_tol=relative, abs_tol=1e-12)
    return type(wanted) is type(found) and bool(wanted == found)


def normal(value: Any) -> Any:
    """A value in one form, whichever reader returned it."""
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, datetime):
        # A naive time stays naive: it never equals an aware time, so the difference is reported.
        instant = value.astimezone(UTC) if value.tzinfo else value
        return datetime.combine(instant.date(), instant.timetz())
    if isinstance(value, Mapping):
        return tuple((name, normal(value[name])) for name in sorted(value))
    if isinstance(value, (list, tuple)):
        return tuple(normal(item) for item in value)
    return value


def sortable(key: tuple[Any, ...]) -> tuple[tuple[str, Any], ...]:
    return tuple(("" if part is None else type(part).__name__, part or 0) for part in key)


def shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
