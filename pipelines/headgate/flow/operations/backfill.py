"""Replaces final rows of gold tables by the rows of a backfill.

A backfill computes rows beside the live tables (``headgate.history.backfill``). The patch of a
table (``flow.operations.patch``) is one Parquet file below the pipeline's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate.declaration.contracts.operation import Document, TableOperation
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD, LATE, name_of
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.storage.files import Storage
from headgate.lake.storage.globs import literal_pattern
from headgate.lake.tables.damage import damaged_file
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "backfill"
EXTENDED = "extended"
_PIECE = 1 << 20


@dataclass(frozen=True)
class Patch:
    """The result of a backfill for one table. ``path`` is the patch's file in the pipeline's
    folder, ``digest`` that of its bytes. It was compared with the rows of a table that was made
    from ``definition`` and had carried out the operations up to ``after``. ``span`` has the first
    and the last begin of a row, in microseconds since 1970 UTC."""

    path: str
    digest: str
    definition: str
    after: int
    span: tuple[int, int]

    @staticmethod
    def of(content: Mapping[str, Any]) -> Patch:
        return Patch(**{**content, "span": tuple(content["span"])})


class BackfillOperation(TableOperation):
    """``{"backfill": ID, "generation": NUMBER, "tables": {NAME: PATCH}}``: the patches of some gold
    tables, computed when the last reset had this generation. ``declaration`` names the declaration
    that gave the rows. A patch is void, and changes nothing, if its table was made from another
    declaration, or if another operation has changed the table since the rows were compared.
    ``EXTENDED`` has the later definitions of the tables, by name, that only add fields inside of
    columns: a patch is valid for these, too. Further entries name the requester."""

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        named = (name for name in document["tables"] if LATE.path(name) in graph)
        changed = [GOLD.path(name) for name in named]  # no rollups
        rollups = (each for path in changed for each in graph.rollups_of(path))
        return [*dict.fromkeys((*changed, *rollups))]

    def describe(self, document: Document) -> str:
        return "take over the rows of a backfill"

    def named(self, document: Document) -> str:
        return f"the backfill {document['backfill']}"

    def files(self, document: Document) -> Collection[str]:
        return [patch["path"] for patch in document["tables"].values()]

    def is_meant_at(self, document: Document, generation: int) -> bool:
        return bool(document["generation"] == generation)

    @property
    def is_taken_back(self) -> bool:
        return True

    def extended(self, document: Document, made_as: Mapping[str, tuple[str, str]]) -> Document:
        later = dict(document.get(EXTENDED, {}))
        for name in document["tables"]:
            valid = _definitions(document, name)
            before, after = made_as.get(GOLD.path(name), ("", ""))
            if before in valid and after not in valid:
                later[name] = [*later.get(name, ()), after]
        return {**document, EXTENDED: later} if later else document

    def change(self, place: StageTable, state: State, document: Document) -> Change:
        name, held = name_of(place.table.name), place.table.state
        patch = Patch.of(document["tables"][name])
        is_valid = held.definition in _definitions(document, name) and held.operation == patch.after
        if not is_valid:
            return Change(state)
        change = _patched(place, state, patch)
        if not (change.add or change.remove):
            return change
        payload = GoldPayload.of(change.state)
        backfills = {**payload.backfills, str(state.operation): patch.span}
        payload = replace(payload, backfills=backfills)
        return replace(change, state=replace(change.state, payload=payload))


def _definitions(document: Document, name: str) -> Sequence[str]:
    """The definitions of a table for which its patch is valid."""
    later: Sequence[str] = document.get(EXTENDED, {}).get(name, ())
    return document["tables"][name]["definition"], *later


def _patched(place: StageTable, state: State, patch: Patch) -> Change:
    from headgate.flow.operations.patch import patched

    rows = rows_of_patch(place.rows(()).sparkSession, place.table.home, patch)
    return patched(place, state, rows, [patch.span])


def rows_of_patch(spark: SparkSession, storage: Storage, patch: Patch) -> DataFrame:
    """The rows of a patch, in the pipeline's storage. Raises DamagedFileError."""
    if file_digest(storage, patch.path) != patch.digest:
        raise damaged_file(storage.uri(patch.path), "is missing, or is not what was written")
    return spark.read.parquet(literal_pattern(storage.uri(patch.path)))


def file_digest(storage: Storage, path: str) -> str | None:
    """The digest of a file's bytes; None if there is no file."""
    found = hashlib.blake2b(digest_size=16)
    try:
        with storage.open(path) as source:
            while piece := source.read(_PIECE):
                found.update(piece)
    except FileNotFoundError:
        return None
    return found.hexdigest()


MEMBER = BackfillOperation()
