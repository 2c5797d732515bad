"""Values of a declaration whose shape is checked, with their place in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from headgate.declaration.errors import DeclarationProblem, Invalid
from headgate.declaration.names import check_not_taken

Value = TypeVar("Value")


@dataclass
class ProblemReport:
    """The problems of one file, collected while it is read."""

    file: Path
    problems: list[DeclarationProblem] = field(default_factory=list)

    def add(self, line: int, key: str, message: str, nearest: str | None = None) -> None:
        self.problems.append(DeclarationProblem(self.file, line, key, message, nearest))

    def at(self, place: Field | Section, message: str, nearest: str | None = None) -> None:
        self.add(place.line, place.path, message, nearest)

    def invalid(self, at: Field, error: Invalid) -> None:
        for each in (error, *error.others):
            self.at(at, each.message, each.nearest)

    def check_apart(
        self, parts: Iterable[tuple[Mapping[str, Field], str]], taken: Mapping[str, str]
    ) -> None:
        """Reports the names of each part that are ``taken`` (``check_not_taken``), or are names of
        an earlier part. What a part is comes with it, such as "a source"."""
        for part, owner in parts:
            for name, at in part.items():
                try:
                    check_not_taken(name, taken)
                except Invalid as error:
                    self.invalid(at, error)
            taken = {**taken, **dict.fromkeys(part, f"is taken by {owner}")}


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

    def values(self, *names: str) -> dict[str, Any]:
        """The values of those of the keys that are given."""
        return {name: found.value for name in names if (found := self.fields.get(name))}

    def section(self, name: str) -> Section | None:
        found = self.fields.get(name)
        return Section.of(found) if found else None

    def entries(self, name: str) -> Mapping[str, Field]:
        """The fields of a map of author-chosen names; empty if there is no map."""
        found = self.fields.get(name)
        return found.value if found and isinstance(found.value, dict) else {}


def built(make: Callable[..., Value], section: Section | None, **more: Any) -> Value | None:
    """``make`` with the values of the section's keys, and with those of ``more`` in their place;
    its own defaults are those of keys that are not given. None without the section, or if a key of
    it is wrong, which is reported."""
    if section is None or section.wrong:
        return None
    return make(**{**section.values(*section.fields), **more})
