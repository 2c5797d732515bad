"""The damage that is found while tables are opened, and the sources that it holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import BRONZE, CONTROL, FILES, kind_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.flow.sources.errors import joined_error
from headgate.lake.control.driver_reports import about_source
from headgate.lake.tables.errors import DamagedFileError, LogGapError

DAMAGE = (LogGapError, DamagedFileError)


class DamagedTables:
    """Collects the damage of the tables of one of several sources: it holds what a job of
    ``layers`` writes for this source. Other damage is raised as soon as it is found: that of an
    only source, of all sources, of the decisions, and of tables that are not declared."""

    def __init__(self, pipeline: Pipeline, layers: Collection[str]) -> None:
        self._graph, self._sources = graph_of(pipeline), pipeline.sources
        self._written = {node.path for node in self._graph.written_by(layers)}
        self._errors: dict[str, HeadgateError] = {}
        self.held: frozenset[str] = frozenset()

    def add(self, path: str, error: HeadgateError) -> None:
        """Raises the error if it does not hold a single source of several."""
        is_shared = path not in self._graph or kind_of(path) == CONTROL
        if is_shared or len(self._sources) == 1:
            raise error
        self._errors.setdefault(path, error)
        self.held = depending_on(self._graph, self._errors)
        if (failed := self.errors).keys() >= {*self._sources}:
            raise joined_error(failed, self._sources)

    @contextmanager
    def found_in(self, path: str) -> Iterator[None]:
        """Adds the damage of a table that is raised inside. Raises as ``add`` does."""
        try:
            yield
        except DAMAGE as error:
            self.add(path, error)

    def __contains__(self, path: str) -> bool:
        """Whether a table is damaged. Nothing reads it, and nothing commits to it: a commit could
        hide that the end of its log is missing."""
        return path in self._errors

    def __bool__(self) -> bool:
        return bool(self._errors)

    @property
    def errors(self) -> Mapping[str, HeadgateError]:
        """The first error of each source that is held, by its name, and of each input log whose
        tables are."""
        found = dict[str, HeadgateError]()
        for path, error in self._errors.items():
            if not self._written.isdisjoint(depending_on(self._graph, [path])):
                found.setdefault(self._graph.numbered_by(path).name, error)
        return found

    @property
    def sources(self) -> frozenset[str]:
        """The sources that have a damaged table, whichever job writes it."""
        return frozenset(source for path in self._errors for source in self._graph.sources_of(path))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Messages about the sources that are held."""
        said = ((n, f"{each.message}: {each.remedy}") for n, each in self.errors.items())
        return tuple(about_source(name, each, self._sources) for name, each in said)

    def require_none(self) -> None:
        """Raises the damage, if there is any."""
        for error in self._errors.values():
            raise error


def depending_on(graph: Graph, damaged: Collection[str]) -> frozenset[str]:
    """Damaged tables, and those that cannot go on without them: the tables of the same stage, what
    reads them, and their publications. Nothing is read from a source without its files log."""
    found = set(damaged)
    found |= {BRONZE.path(node.name) for node in graph.of(FILES) if node.path in found}
    found |= {node.path for node in graph if not found.isdisjoint(node.sides.values())}
    found |= graph.rebuilt_with(found)
    found |= {node.path for node in graph if not found.isdisjoint(node.upstream)}
    return frozenset(found)
