"""A toy operation that no engine file knows: the open rows of one group of a gold table go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headgate import registry
from headgate.declaration.kinds import GOLD
from headgate.graph.graph import Graph
from headgate.graph.operations import Document
from headgate.operations.contract import Change, Place, TableOperation
from headgate.tables.data_file import FINAL
from headgate.tables.open_rows import open_rows
from headgate.tables.state import State


class Forget(TableOperation):
    """``{"table": NAME, "column": NAME, "value": TEXT}``."""

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        return [path for path in [GOLD.path(document["table"])] if path in graph]

    def describe(self, document: Document) -> str:
        return f"forget the open rows of {document['column']} {document['value']}"

    def change(self, place: Place, state: State, document: Document) -> Change:
        from pyspark.sql import functions as F

        from headgate.tables.staging import stage

        opened = open_rows(place.table)
        if not opened.live:
            return Change(state)
        kept = place.rows(opened.files).where(F.col(document["column"]) != document["value"])
        kept = kept.withColumn(FINAL, F.lit(False))
        staged = stage(place.table, state, kept, time_column=place.time_column)
        return Change(replace(state, changed_at=state.at), add=staged, remove=opened.live)


MEMBER = Forget()


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """As pip installs a package that has the operation: by an entry point."""
    about = folder / "toy_operations-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-operations\nVersion: 1\n")
    entry = f"[headgate.operations]\nforget = {__name__}:MEMBER\n"
    (about / "entry_points.txt").write_text(entry)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        registry._plugged_in.cache_clear()
        yield
    registry._plugged_in.cache_clear()
