"""The option --source, and how answers name the sources of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headgate.cli.declaration import named
from headgate.errors import UsageError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline, Source


def the_source(
    declared: Pipeline,
    word: str | None,
    known: Mapping[str, Source] | None = None,
    what: str = "source",
) -> Source:
    """The source that the option --source names; without it, the only source. With ``known``, only
    these of the sources, and ``what`` says what they are. Raises UsageError."""
    found = declared.sources if known is None else known
    if word is not None:
        return named(found, word, f"{declared.name} has no {what}")
    if len(found) > 1:
        remedy = f"name one: {' or '.join(f'--source {name}' for name in found)}"
        raise UsageError(f"{declared.name} has several sources", remedy)
    return next(iter(found.values()))


class SourceLabels:
    """The source of a line, a row or a document in an answer. An answer about a pipeline with one
    of ``sources`` does not name it."""

    def __init__(self, sources: Sized) -> None:
        self.several = len(sources) > 1
        self.header = ("source",) if self.several else ()

    def cell(self, source: str) -> tuple[str, ...]:
        return (source,) if self.several else ()

    def before(self, source: str) -> str:
        return f"{source}: " if self.several else ""

    def field(self, source: str) -> dict[str, str]:
        return {"source": source} if self.several else {}

    def fields(self, row: Any) -> dict[str, Any]:
        """The fields of a dataclass that has the field ``source``."""
        found = asdict(row)
        return found if self.several else {k: v for k, v in found.items() if k != "source"}

    def facts(self, of: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """The facts about each source, by source; the facts themselves if there is one source."""
        return {"sources": dict(of)} if self.several else next(iter(of.values()))
