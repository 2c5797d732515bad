"""The columns that identify the rows of a published table."""

from __future__ import annotations

from headgate.declaration.contracts.operator import begin_of
from headgate.declaration.model import GoldTable, Pipeline, Publication
from headgate.lake.storage.copies import copy_id
from headgate.lake.tables.table import Table

JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
"""The options for rows as JSON in Spark, with which equal rows give equal texts."""


def key_of_gold(table: GoldTable) -> tuple[str, ...]:
    """The columns that identify a row of a gold table."""
    return (*begin_of(table), *(b.name for b in table.by))


def identity_of(pipeline: Pipeline, publication: Publication) -> tuple[str, ...]:
    """The columns that identify a row in a version of a published table."""
    if publication.layer == "quarantine":
        return ("partition", "offset", "table")
    table = pipeline.gold[publication.table]
    if publication.layer == "late":
        return ("_partition", "_offset", *begin_of(table))
    return key_of_gold(table)


def log_id(table: Table) -> str:
    """Identifies the log of a table, and distinguishes it from the logs of copies."""
    return f"{table.handle.metadata().id} {copy_id(table.home)}".strip()
