"""The errors of a declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import HeadgateError


@dataclass(frozen=True)
class DeclarationProblem:
    """One mistake in a declaration. ``key`` is the dotted path of the key it is about (empty for
    the file as a whole); ``nearest`` is the valid name that was probably meant."""

    file: Path
    line: int
    key: str
    message: str
    nearest: str | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " + (f"{self.key}: " if self.key else "")
        hint = f' (did you mean "{self.nearest}"?)' if self.nearest else ""
        return f"{where}{self.message}{hint}"


def _place_beside(file: Path) -> Callable[[DeclarationProblem], tuple[bool, str, int]]:
    return lambda problem: (problem.file != file, str(problem.file), problem.line)


class DeclarationError(HeadgateError, code=exit_codes.USAGE):
    """All the problems of one declaration and of its suites, in the order of their lines."""

    def __init__(self, file: Path, problems: Iterable[DeclarationProblem]) -> None:
        self.file = file
        self.problems = tuple(sorted(problems, key=_place_beside(file)))
        super().__init__("\n".join(map(str, self.problems)), shell_command("plan", str(file)))


class Invalid(Exception):
    """A value that is not valid at its place. Callers of the loader never get it: the loader adds a
    file, a line and a key, and so makes a :class:`Problem` of it."""

    def __init__(
        self, message: str, nearest: str | None = None, others: tuple[Invalid, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.nearest = nearest
        self.others = others
        """What else is wrong with the same value."""
