"""Replaces final rows of gold tables by the rows of a backfill.

A backfill computes rows beside the live tables (``headgate.history.backfill``). The rows that
differ are the *patch* of a table: one Parquet file below the pipeline's folder. Its columns are the
table's and ``CHANGE``: whether the row is changed, new or gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.declaration.contracts.operation import Document, TableOperation
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD, name_of
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.storage.files import Storage
from headgate.lake.storage.globs import literal_pattern
from headgate.lake.tables.damage import damaged_file
from headgate.lake.tables.data_file import FINAL, STATE, DataFile
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.state import State, add_counts, time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "backfill"
CHANGE = "_change"
CHANGED, NEW, GONE = "changed", "new", "gone"
EXTENDED = "extended"
_PIECE = 1 << 20


@dataclass(frozen=True)
class Patch:
    """The result of a backfill for one table. ``path`` is the patch's file in the pipeline's
    folder, ``digest`` that of its bytes. It was compared with the rows of a table that was made
    from ``definition`` and had carried out the operations up to ``after``. ``key`` are the columns
    that identify a row. ``span`` has the first and the last begin of a row, in microseconds since
    1970 UTC. ``counted`` is by how much the table's first ``count(*)`` grows."""

    path: str
    digest: str
    definition: str
    after: int
    key: tuple[str, ...]
    span: tuple[int, int]
    counted: int = 0

    @staticmethod
    def of(content: Mapping[str, Any]) -> Patch:
        content = {**content, "key": tuple(content["key"]), "span": tuple(content["span"])}
        return Patch(**content)


class BackfillOperation(TableOperation):
    """``{"backfill": ID, "generation": NUMBER, "tables": {NAME: PATCH}}``: the patches of some gold
    tables, computed when the last reset had this generation. ``declaration`` names the declaration
    that gave the rows. A patch is void, and changes nothing, if its table was made from another
    declaration, or if another operation has changed the table since the rows were compared.
    ``EXTENDED`` has the later definitions of the tables, by name, that only add fields inside of
    columns: a patch is valid for these, too. Further entries name the requester."""

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        return [path for path in map(GOLD.path, document["tables"]) if path in graph]

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
        return _patched(place, state, patch)


def _definitions(document: Document, name: str) -> Sequence[str]:
    """The definitions of a table for which its patch is valid."""
    later: Sequence[str] = document.get(EXTENDED, {}).get(name, ())
    return document["tables"][name]["definition"], *later


def _patched(place: StageTable, state: State, patch: Patch) -> Change:
    from pyspark.sql import functions as F

    from headgate.lake.tables.staging import stage

    table = place.table

    def staged(rows: DataFrame) -> tuple[DataFile, ...]:
        rows = rows.withColumn(FINAL, F.lit(True))
        return stage(table, state, rows, time_column=place.time_column, most_files=1)

    found = overlapping_files(table.handle, place.time_column, [patch.span])
    files = [file for file in found if file.is_final]
    old = _keyed(place.rows(files).drop(STATE), patch)
    asked = _keyed(_read(old, table.home, patch), patch)
    before = old.select("_key", F.col("revision").alias("_old"))
    revision = F.coalesce(F.col("_old") + F.lit(1), F.lit(0))
    new = asked.where(F.col(CHANGE) != GONE).join(before, "_key", "left")
    new = new.withColumn("revision", revision.cast("int"))
    new = new.withColumn("updated_at", F.lit(time_of(state.at)))
    kept = old.join(asked.select("_key"), "_key", "left_anti")
    columns = [f"`{name}`" for name in place.rows(()).drop(STATE).columns]
    add, moved = staged(new.select(*columns)), staged(kept.select(*columns))
    total = add_counts(state.total, {"final": _growth(table.home, patch)})
    total = add_counts(total, {"backfilled": patch.counted})
    state = replace(state, total=total, changed_at=state.at)
    return Change(state, add=add, remove=files, moved=moved)


def _keyed(rows: DataFrame, patch: Patch) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.withColumn("_key", F.struct(*(f"`{name}`" for name in patch.key)))


def _read(like: DataFrame, storage: Storage, patch: Patch) -> DataFrame:
    """The rows of a patch. Raises DamagedFileError."""
    if file_digest(storage, patch.path) != patch.digest:
        raise damaged_file(storage.uri(patch.path), "is missing, or is not what was written")
    reader = like.sparkSession.read
    return reader.parquet(literal_pattern(storage.uri(patch.path)))


def _growth(storage: Storage, patch: Patch) -> int:
    """By how many rows a patch makes a table grow."""
    with storage.open(patch.path) as source:
        changes = pq.read_table(source, columns=[CHANGE]).column(CHANGE)
    new, gone = (pc.sum(pc.equal(changes, each)).as_py() or 0 for each in (NEW, GONE))
    return int(new) - int(gone)


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
