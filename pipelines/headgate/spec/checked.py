"""Values of a declaration that have the shape their key asks for, still knowing their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate.spec.errors import Problem, Unfit


@dataclass
class Report:
    """The problems of one file, collected while it is read."""

    file: Path
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int, key: str, message: str, nearest: str | None = None) -> None:
        self.problems.append(Problem(self.file, line, key, message, nearest))

    def concerns(self, key: str) -> bool:
        """Whether something was already said of this key or of one under it."""
        return any(f"{problem.key}.".startswith(f"{key}.") for problem in self.problems)

    def unfit(self, at: Field, error: Unfit) -> None:
        self.add(at.line, at.path, error.message, error.nearest)


@dataclass(frozen=True)
class Field:
    """A checked value: text, int, bool, timedelta, datetime, a tuple of Fields, a dict of Fields or
    of offsets, depending on its key's kind. ``written`` is the text with placeholders, where the
    value came of some."""

    path: str
    line: int
    value: Any
    written: str | None = None

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


@dataclass(frozen=True)
class Section:
    """A map of checked values. What was missing or wrong is absent, and already reported."""

    path: str
    line: int
    fields: Mapping[str, Field]

    @classmethod
    def of(cls, at: Field) -> Section:
        return cls(at.path, at.line, at.value if isinstance(at.value, dict) else {})

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

    def boolean(self, name: str, default: bool) -> bool:
        found = self.fields.get(name)
        return bool(found.value) if found else default

    def section(self, name: str) -> Section | None:
        found = self.fields.get(name)
        return Section.of(found) if found else None

    def entries(self, name: str) -> Mapping[str, Field]:
        """The fields of a map of author-chosen names; empty where there is none."""
        found = self.fields.get(name)
        return found.value if found and isinstance(found.value, dict) else {}
