"""Values of a declaration whose shape is checked, with their place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from headgate.declaration.errors import Invalid, Problem

Value = TypeVar("Value")


@dataclass
class Report:
    """The problems of one file, collected while it is read."""

    file: Path
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int, key: str, message: str, nearest: str | None = None) -> None:
        self.problems.append(Problem(self.file, line, key, message, nearest))

    def invalid(self, at: Field, error: Invalid) -> None:
        for each in (error, *error.others):
            self.add(at.line, at.path, each.message, each.nearest)


@dataclass(frozen=True)
class Field:
    """A checked value: text, int, bool, timedelta, datetime, a tuple of Fields, a dict of Fields or
    of offsets, depending on its key's kind; None if it was wrong or missing, which is reported.
    ``written`` is the text with placeholders, if the value had any. If a placeholder
    ``is_missing``, its value is missing and not needed: ``value`` is then the text with
    placeholders."""

    path: str
    line: int
    value: Any
    written: str | None = None
    is_missing: bool = False

    @property
    def text(self) -> str:
        return str(self.value)

    @property
    def shown(self) -> str:
        """The value as a message may show it."""
        return self.written or self.text

    @property
    def items(self) -> tuple[Field, ...]:
        return self.value if isinstance(self.value, tuple) else ()


class Partial(dict[str, Value]):
    """A map of which a part could not be read, which is reported. A missing key may be in that
    part, so every key counts as present, and its value is None."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        return None


def partial(known: Mapping[str, Value], *, missing: bool) -> dict[str, Value]:
    """``known``; as a Partial if a part of it is ``missing``, or was missing before."""
    return Partial(known) if missing or isinstance(known, Partial) else dict(known)


@dataclass(frozen=True)
class Section:
    """A map of checked values. Values that were missing or wrong are absent and already
    reported."""

    path: str
    line: int
    fields: Mapping[str, Field]
    wrong: frozenset[str] | None = frozenset()

    @classmethod
    def of(cls, at: Field) -> Section:
        if at.value is None:
            return cls(at.path, at.line, {}, None)
        known = {name: field for name, field in at.value.items() if field.value is not None}
        return cls(at.path, at.line, known, frozenset(at.value.keys() - known.keys()))

    def reported(self, name: str) -> bool:
        """Whether a key is absent because it, or the whole section, was wrong."""
        return self.wrong is None or name in self.wrong

    def get(self, name: str) -> Field | None:
        return self.fields.get(name)

    def text(self, name: str, default: str | None = None) -> str | None:
        found = self.fields.get(name)
        return found.text if found else default

    def duration(self, name: str, default: timedelta) -> timedelta:
        found = self.fields.get(name)
        return found.value if found else default

    def integer(self, name: str, default: int) -> int:
        found = self.fields.get(name)
        return int(found.value) if found else default

    def section(self, name: str) -> Section | None:
        found = self.fields.get(name)
        return Section.of(found) if found else None

    def entries(self, name: str) -> Mapping[str, Field]:
        """The fields of a map of author-chosen names; empty if there is no map."""
        found = self.fields.get(name)
        return found.value if found and isinstance(found.value, dict) else {}
