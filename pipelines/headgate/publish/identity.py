"""What tells the rows of a published table apart."""

from __future__ import annotations

from headgate.declaration.model import GoldTable, Pipeline, Publication
from headgate.declaration.operators import begin_of
from headgate.storage.copies import copy_id
from headgate.tables.table import Table

JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
"""How Spark writes rows as JSON: equal rows are equal texts."""


def key_of_gold(table: GoldTable) -> tuple[str, ...]:
    """The columns of a gold table that tell its rows apart."""
    return (*begin_of(table), *(b.name for b in table.by))


def identity_of(pipeline: Pipeline, publication: Publication) -> tuple[str, ...]:
    """The columns that tell the rows of a published table apart, in a version of it."""
    if publication.layer == "quarantine":
        return ("partition", "offset", "table")
    table = pipeline.gold[publication.table]
    if publication.layer == "late":
        return ("_partition", "_offset", *begin_of(table))
    return key_of_gold(table)


def log_id(table: Table) -> str:
    """Tells the log of a table from all others, also from those of copies."""
    return f"{table.handle.metadata().id} {copy_id(table.home)}".strip()
