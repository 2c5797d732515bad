"""A toy operation that no engine file knows: it deletes the open rows of one group of a gold
table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from headgate.declaration.contracts.operation import Document, TableOperation
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.data_file import FINAL
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import State
from tests.support.toys import plugged_in


class Forget(TableOperation):
    """Its document is ``{"table": NAME, "column": NAME, "value": TEXT}``."""

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        return [path for path in [GOLD.path(document["table"])] if path in graph]

    def describe(self, document: Document) -> str:
        return f"forget the open rows of {document['column']} {document['value']}"

    def change(self, place: StageTable, state: State, document: Document) -> Change:
        from pyspark.sql import functions as F

        from headgate.lake.tables.staging import stage

        opened = open_rows(place.table)
        if not opened.live:
            return Change(state)
        kept = place.rows(opened.files).where(F.col(document["column"]) != document["value"])
        kept = kept.withColumn(FINAL, F.lit(False))
        staged = stage(place.table, state, kept, time_column=place.time_column)
        payload = replace(GoldPayload.of(state), open=kept.count())
        state = replace(state, payload=payload, changed_at=state.at)
        return Change(state, add=staged, remove=opened.live)


MEMBER = Forget()


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Install the operation as pip installs a package that has it: with an entry point."""
    entry = f"forget = {__name__}:MEMBER"
    with plugged_in(folder, "toy_operations", "headgate.operations", entry):
        yield
