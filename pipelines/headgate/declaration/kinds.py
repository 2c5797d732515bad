"""The kinds of tables, and their paths: no other module builds or parses a path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """``folder`` holds the tables of this kind, each under its name, relative to the pipeline's.

    ``is_built``: its rows are computed from bronze's, so it can be reset and rebuilt. ``is_dense``:
    it has a commit for every step; a side table, for example, skips the batches without rows for
    it. ``payload`` names what its commits carry beside the position (``lake.tables.payloads``).
    ``counted_as`` is the count of its rows in the totals of its commits, in gold of its final rows;
    None for a table without rows. ``numbers_batches``: its commits give the batch ids of the tables
    downstream.
    """

    name: str
    folder: str
    is_built: bool = True
    is_dense: bool = False
    payload: str = "none"
    counted_as: str | None = None
    numbers_batches: bool = False

    def path(self, table: str) -> str:
        """The path of a table of this kind."""
        return f"{self.folder}/{table}"


CONTROL = Kind("control", "_headgate/control", is_built=False, counted_as="decisions")
"""The decisions that concern several tables."""
FILES = Kind("files", "_headgate/files", is_built=False, counted_as="files")
"""The log of a source's files."""
BRONZE = Kind(
    *("bronze", "bronze"),
    is_built=False,
    payload="bronze",
    counted_as="read",
    numbers_batches=True,
)
INPUTS = Kind("inputs", "_headgate/inputs", payload="inputs", numbers_batches=True)
"""An input log: the batch ids of the gold tables that read several sources, and for each of them
the batch ids of these sources. Commits without rows."""
QUARANTINE = Kind("quarantine", "quarantine", counted_as="quarantined")
REJECTED = Kind("rejected", "rejected", payload="rejected", counted_as="rejected")
"""The rows of a silver table that broke a rule of its suite."""
SILVER = Kind("silver", "silver", is_dense=True, payload="silver", counted_as="silver")
LATE = Kind("late", "late", counted_as="late")
GOLD = Kind("gold", "gold", is_dense=True, payload="gold", counted_as="final")
PUBLICATION = Kind("publication", "_headgate/publish", is_built=False, payload="publication")
"""The progress of a publication: commits without rows."""

KINDS = (CONTROL, FILES, BRONZE, INPUTS, QUARANTINE, REJECTED, SILVER, LATE, GOLD, PUBLICATION)
"""In the order in which a batch moves through them, decisions first."""
NUMBERING = tuple(kind for kind in KINDS if kind.numbers_batches)
"""The kinds whose commits give batch ids."""
RECORDS = (BRONZE, QUARANTINE, REJECTED, SILVER, LATE, GOLD)
"""The kinds that hold records, or rows that are computed from records. Only these, and input
logs, are reset."""

_BY_FOLDER = {kind.folder: kind for kind in KINDS}


def kind_of(path: str) -> Kind:
    """The kind of the table at a path. Raises KeyError if no table can have this path."""
    return _BY_FOLDER[path.rpartition("/")[0]]


def name_of(path: str) -> str:
    """The name of the table at a path."""
    return path.rpartition("/")[2]


def input_log_of(sources: Iterable[str]) -> str:
    """The path of the input log of some sources, by their names, which have no hyphen."""
    return INPUTS.path("-".join(sorted({*sources})))


def transaction_id(pipeline: str, path: str) -> str:
    """The application id of a table's transactions. It does not contain the location of the tables,
    because they may move."""
    return f"headgate/{pipeline}/{path}"
