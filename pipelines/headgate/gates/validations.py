"""The document of each validation of a gold table, for reports and the events of a gate.

It is written before the version becomes visible, so a crash may leave a document for a version that
never did. Only the table's log decides. A document that is missing or damaged is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from headgate.declaration.suites.model import Suite
from headgate.errors import HeadgateError
from headgate.expectations.result import RuleResult
from headgate.gates.documents import Release
from headgate.storage.documents import documents_in, read_document, write_document
from headgate.storage.layout import CONTROL, Layout
from headgate.tables.state import commit_time

KEPT = 500
"""The number of validations of a table that are kept."""

_REBUILT = ".rebuild.json"

Outcome = Literal["met", "broken", "held", "released"]


@dataclass(frozen=True)
class Validation:
    """The results of ``suite`` for the version of a table at batch id ``n``, which was to become
    ``version`` of its log. ``released`` is the release that let it become visible although it
    breaks a rule that holds. For the rebuild of the table, ``log`` is the folder of the rebuild's
    log. ``operation`` and ``generation`` are those of the version, as in ``Hold``."""

    table: str
    n: int
    version: int
    at: datetime
    suite: Suite
    results: tuple[RuleResult, ...]
    released: Release | None = None
    log: str = ""
    operation: int = 0
    generation: int = 0

    @property
    def broken(self) -> tuple[RuleResult, ...]:
        return tuple(result for result in self.results if not result.met)

    @property
    def outcome(self) -> Outcome:
        """``broken``: it only breaks rules that warn."""
        if any(result.holds for result in self.results):
            return "held" if self.released is None else "released"
        return "broken" if self.broken else "met"

    def as_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "n": self.n,
            "version": self.version,
            "at": self.at.isoformat(),
            "suite": self.suite.encode(),
            "results": [asdict(result) for result in self.results],
            "released": None if self.released is None else self.released.as_dict(),
            "log": self.log,
            "operation": self.operation,
            "generation": self.generation,
            "outcome": self.outcome,
        }

    @staticmethod
    def of(document: Mapping[str, Any]) -> Validation:
        """Raises KeyError, TypeError or ValueError if it is not a result of ``as_dict``."""
        released = document["released"]
        return Validation(
            table=document["table"],
            n=document["n"],
            version=document["version"],
            at=datetime.fromisoformat(document["at"]),
            suite=Suite.decode(document["suite"]),
            results=tuple(RuleResult(**each) for each in document["results"]),
            released=None if released is None else Release.of(released),
            log=document["log"],
            operation=document.get("operation", 0),
            generation=document.get("generation", 0),
        )


class ValidationLog:
    """Writes the documents of one gold table."""

    def __init__(self, layout: Layout, table: str) -> None:
        self._layout, self._table = layout, table

    def record(self, validation: Validation) -> None:
        """Write a document, and remove the oldest ones. Of a table that stays held, only the first
        and the last document are kept: a long hold must not remove the document with which it
        began, which is its event. If this fails, only the document is lost: no commit may depend on
        it."""
        with suppress(OSError):
            paths = _paths(self._layout, self._table)
            # Sorts after all others, even if the clock was set back: publications of events
            # continue from the last name.
            number = max([commit_time(validation.at), *(_number(path) + 1 for path in paths[-1:])])
            ending = _REBUILT if validation.log else ".json"
            name = f"{number:020d}-{validation.version:09d}{ending}"
            path = f"{_folder(self._table)}/{name}"
            write_document(self._layout.storage, path, validation.as_dict())
            for old in (*paths[: 1 - KEPT], *self._held_again(validation, paths)):
                self._layout.storage.remove(old)

    def _held_again(self, validation: Validation, paths: Sequence[str]) -> Sequence[str]:
        """The document before ``validation``, if the table was held then, before that, and now."""
        of_log = [path for path in paths if path.endswith(_REBUILT) == bool(validation.log)]
        before = of_log[-2:]
        is_held = validation.outcome == "held" and len(before) == 2
        return before[1:] if is_held and all(map(self._is_held, before)) else ()

    def _is_held(self, path: str) -> bool:
        with suppress(HeadgateError):
            document = read_document(self._layout.storage, path)
            return document is not None and document.get("outcome") == "held"
        return False


def validations(layout: Layout, table: str) -> tuple[Validation, ...]:
    """The newest validations of a gold table and of its rebuilds, the oldest first."""
    return tuple(each for _, each in named_validations(layout, table))


def named_validations(
    layout: Layout, table: str, after: str = ""
) -> Iterator[tuple[str, Validation]]:
    """As ``validations``, each with the name of its document, by which they are sorted. Documents
    up to the name ``after`` are not read."""
    for path in _paths(layout, table)[-KEPT:]:
        name = path.rpartition("/")[2].removesuffix(".json")
        if name <= after:
            continue
        with suppress(HeadgateError, KeyError, TypeError, ValueError):
            document = read_document(layout.storage, path)
            if document is not None:
                yield name, Validation.of(document)


def _number(path: str) -> int:
    """The number that a document's name begins with; 0 if a foreign file has none."""
    digits = path.rpartition("/")[2].partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def _paths(layout: Layout, table: str) -> list[str]:
    """The documents of a table, the oldest first."""
    return documents_in(layout.storage, _folder(table))


def _folder(table: str) -> str:
    return f"{CONTROL}/validations/{table}"
