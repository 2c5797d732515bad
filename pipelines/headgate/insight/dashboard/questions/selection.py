"""Which rows of a gold table a question is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate.declaration.model import GoldTable
from headgate.insight.dashboard.errors import BadQuestionError
from headgate.insight.dashboard.questions.facts import Facts
from headgate.insight.dashboard.questions.sql import Condition, all_of, duck_type
from headgate.insight.querying.sandbox import quoted

KEY, NULL = "key.", "null."
"""Prefixes of parameters: ``key.channel=app`` is a value, ``null.channel=1`` is null."""
_MOST_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True)
class Selection:
    """Rows whose result begins at or after ``since`` and before ``until``. ``last`` counts back
    from the end of the newest result. ``keys`` are columns and texts of their values; None is
    null."""

    since: datetime | None = None
    until: datetime | None = None
    last: timedelta | None = None
    keys: tuple[tuple[str, str | None], ...] = ()

    def within(self, begin: str | None, newest: datetime | None) -> Condition:
        """The condition on the column ``begin``; ``newest`` is the end of the newest result."""
        if begin is None:
            return Condition()
        conditions = []
        since = self.since
        if self.last is not None and newest is not None:
            since = newest - self.last
        if since is not None:
            conditions.append(Condition(f"{quoted(begin)} >= ?", (since,)))
        if self.until is not None:
            conditions.append(Condition(f"{quoted(begin)} < ?", (self.until,)))
        return all_of(*conditions)

    def of_keys(self, table: GoldTable) -> Condition:
        types = {key.name: duck_type(key.type) for key in table.by}
        return all_of(
            *(
                Condition(f"{quoted(name)} IS NULL")
                if value is None
                else Condition(f"{quoted(name)} = TRY_CAST(? AS {types[name]})", (value,))
                for name, value in self.keys
            )
        )


def selection(facts: Facts, asked: Sequence[tuple[str, str]]) -> Selection:
    """The selection in the query parameters of an address; other parameters are ignored. Raises
    BadQuestionError."""
    given = dict(asked)
    return Selection(
        since=_time(given, "from"),
        until=_time(given, "to"),
        last=_last(given),
        keys=tuple(
            [(facts.key(n[len(KEY) :]), value) for n, value in asked if n.startswith(KEY)]
            + [(facts.key(n[len(NULL) :]), None) for n, _ in asked if n.startswith(NULL)]
        ),
    )


def whole(given: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A whole number of the parameters, limited to ``low`` … ``high``. Raises BadQuestionError."""
    text = given.get(name) or str(default)
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise BadQuestionError(
            f"{name} must be a whole number, not {text[:40]!r}", remedy=f"for example {default}"
        )
    return min(max(int(text), low), high)


def _time(given: Mapping[str, str], name: str) -> datetime | None:
    if not (text := given.get(name)):
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadQuestionError(
            f"{name} must be a time, not {text[:40]!r}", remedy="for example 2026-05-04T12:00Z"
        ) from None


def _last(given: Mapping[str, str]) -> timedelta | None:
    if not given.get("last"):
        return None
    return timedelta(seconds=whole(given, "last", 3600, 1, _MOST_SECONDS))
