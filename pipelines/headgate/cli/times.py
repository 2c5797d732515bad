"""Times that a person types."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import typer


def time_range(
    begin: str | None, end: str | None, now: datetime, options: tuple[str, str] = ("--from", "--to")
) -> tuple[datetime | None, datetime | None]:
    """Two times as :func:`time_given`, the first before the second. Raises BadParameter."""
    first, last = time_given(begin, options[0], now), time_given(end, options[1], now)
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter(f"it is not after {options[0]}", param_hint=options[1])
    return first, last


def time_given(text: str | None, option: str, now: datetime) -> datetime | None:
    """A time in UTC; a duration counts back from now. Raises BadParameter."""
    from headgate.declaration.errors import Invalid
    from headgate.declaration.quantities import parse_duration

    if text is None:
        return None
    try:
        with suppress(Invalid):
            return now - parse_duration(text)
        given = datetime.fromisoformat(text)
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        said = f'{text!r} is neither a time ("2026-01-31 12:00") nor a duration ("2 hours")'
        raise typer.BadParameter(said, param_hint=option) from error
