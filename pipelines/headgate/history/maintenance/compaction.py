"""Compaction of a table: decides which small files are merged, and replaces them by merged files.

The decision is made from the log alone. The rows are rewritten while batches run, from files that
never change. The commit is made under the owner's batch lock, on a handle in which all merged files
are live. Therefore the table has the same rows before and after.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, zip_longest

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.commands import SEE_DAMAGE
from headgate.declaration.kinds import GOLD, kind_of
from headgate.declaration.quantities import plural
from headgate.failpoints import failpoint
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import attempt_folder, describe
from headgate.lake.tables.damage import damaged_file, is_of_machine, require_sound
from headgate.lake.tables.data_file import STATE, DataFile, merged_name
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.live_files import live_paths
from headgate.lake.tables.state import State, commit_time
from headgate.lake.tables.table import Table

_ROWS = 16_384  # read at once
_FILES = 200  # read in one step
_ROW_GROUP = 64 << 20  # bytes in memory, and written at once


@dataclass(frozen=True)
class CompactionLimits:
    """Files below ``small`` bytes are merged if a table has at least ``least`` of them that can be
    merged. A merged file replaces at most ``most`` bytes, unless the files of one batch have
    more."""

    small: int = 32 << 20
    least: int = 8
    most: int = 128 << 20


DEFAULT_LIMITS = CompactionLimits()

FileGroup = tuple[DataFile, ...]


def mergeable_files(
    table: str, live: Iterable[DataFile], upto: int, unpublished: Collection[str]
) -> Iterator[DataFile]:
    """The files that no stage will read by name: in gold, files of final rows; in every other
    table, files of batches up to ``upto``, which all tables have processed. ``table`` is a path
    such as ``silver/orders``."""
    is_gold = kind_of(table) == GOLD
    for file in live:
        done = file.is_ours and (file.is_final if is_gold else file.n <= upto)
        if done and file.path not in unpublished:
            yield file


def merge_groups(
    files: Iterable[DataFile],
    boundaries: Collection[int] = (),
    limits: CompactionLimits = DEFAULT_LIMITS,
) -> tuple[FileGroup, ...]:
    """Groups of files to merge, in the order of their batches.

    ``boundaries`` are batch ids. No group has rows on both sides of one, because a rebuild stops
    there to carry out an operation. A file that is alone between two of them cannot be merged.
    """
    places = sorted(set(boundaries))
    small = sorted((f for f in files if f.size < limits.small), key=lambda f: (f.n, f.path))
    sections = (tuple(found) for _, found in groupby(small, lambda f: bisect_left(places, f.n)))
    mergeable = [section for section in sections if len(section) > 1]
    if sum(map(len, mergeable)) < limits.least:
        return ()
    return tuple(group for section in mergeable for group in _filled(section, limits))


def _filled(section: FileGroup, limits: CompactionLimits) -> Iterator[FileGroup]:
    group: list[DataFile] = []
    size = 0
    for _, files in groupby(section, key=lambda f: f.n):
        batch = tuple(files)
        added = sum(f.size for f in batch)
        if group and size + added > limits.most:
            if len(group) > 1:
                yield tuple(group)
            group, size = [], 0
        group += batch
        size += added
    if len(group) > 1:
        yield tuple(group)


def merge_files(
    table: Table, state: State, files: Sequence[DataFile]
) -> Generator[None, None, DataFile]:
    """Write the rows of some files of one partition to a new file, step by step. No commit names
    the new file yet.

    ``state`` is the table's. Memory is bounded by a row group. Raises DamagedFileError if a file is
    damaged, or if the new file would not have the same number of rows.
    """
    storage = table.storage
    require_sound(storage, files)
    lowest = min(f.n if f.merged_from is None else f.merged_from for f in files)
    folder = attempt_folder(replace(state, n=max(f.n for f in files)))
    inside = "".join(f"{column}={value}/" for column, value in files[0].partition.items())
    schema = rows_schema(table)
    with (
        storage.create(f"{folder}/{inside}{merged_name(lowest)}") as sink,
        pq.ParquetWriter(
            sink,
            schema,
            write_page_checksum=True,
            store_schema=False,
            store_decimal_as_integer=True,  # as Spark writes them
        ) as writer,
    ):
        for rows in _row_groups(storage, files, schema):
            if rows is not None:
                writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
            yield
    (merged,) = describe(storage, folder, statistics_column(table))
    _require_same_rows(table, files, merged)
    failpoint("maintenance.merged")
    return merged


def replace_files(table: Table, files: Sequence[DataFile], merged: DataFile, now: datetime) -> bool:
    """Replace ``files`` by ``merged`` in one commit. Returns False, without a commit, if one of
    ``files`` is no longer live; the new file is then an orphan.

    The caller holds the batch lock of the table's writer. Raises CommitRefusedError, FencedError.
    """
    state = table.refresh()
    if not live_paths(table.handle).issuperset(file.path for file in files):
        return False
    held = replace(state.held("maintenance", table.epoch), at=commit_time(now))
    table.commit(held, (merged,), files)
    return True


def rows_schema(table: Table) -> pa.Schema:
    """The columns of a table's files: those of the table without the partition columns."""
    schema = pa.schema(table.handle.schema().to_arrow())
    return pa.schema([field for field in schema if field.name not in table.partition_by])


def statistics_column(table: Table) -> str:
    """The column whose smallest and greatest value a table's log records for each file."""
    return str(table.handle.metadata().configuration["delta.dataSkippingStatsColumns"])


def _row_groups(
    storage: Storage, files: Sequence[DataFile], schema: pa.Schema
) -> Iterator[pa.Table | None]:
    """Row groups; also None after every ``_FILES`` files, so that a step ends even if no row group
    is complete."""
    held: list[pa.RecordBatch] = []
    size = 0
    for number, file in enumerate(files, start=1):
        for batch in _batches(storage, file, schema):
            held.append(batch)
            size += batch.nbytes
            if size >= _ROW_GROUP:
                yield pa.Table.from_batches(held, schema)
                held, size = [], 0
        if number % _FILES == 0:
            yield None
    if held:
        yield pa.Table.from_batches(held, schema)


def _batches(storage: Storage, file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Every page is checked against its checksum, so that damage is not copied to a new file."""
    try:
        with storage.open(file.path) as source:
            parquet = pq.ParquetFile(source, page_checksum_verification=True)
            # Files of final rows have the state column only if their batch also left open rows.
            found = [field for field in parquet.schema_arrow if field.name != STATE]
            if not _has_columns(found, schema):
                raise damaged_file(storage.uri(file.path), "has other columns than its table")
            for batch in parquet.iter_batches(_ROWS):
                yield batch.select(schema.names).cast(schema)
    except (OSError, pa.ArrowException) as error:
        if is_of_machine(error):
            raise
        what = f"cannot be read: {str(error).splitlines()[0]}"
        raise damaged_file(storage.uri(file.path), what) from error


def _has_columns(found: Iterable[pa.Field], wanted: Iterable[pa.Field]) -> bool:
    """Whether a file has all columns. Its structs may have fewer fields, because fields may have
    been added later."""
    pairs = zip_longest(found, wanted)
    return all(a and b and a.name == b.name and _can_be(a.type, b.type) for a, b in pairs)


def _can_be(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether types are equal, except for nullability, the names of list elements, and fields at
    the end of structs that only ``wanted`` has."""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        held = _fields(found)
        return _has_columns(held, _fields(wanted)[: len(held)])
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _can_be(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        is_key_same = found.key_type == wanted.key_type
        return bool(is_key_same) and _can_be(found.item_type, wanted.item_type)
    return bool(found == wanted)


def _fields(struct: pa.DataType) -> list[pa.Field]:
    return [struct.field(i) for i in range(struct.num_fields)]


def _require_same_rows(table: Table, files: Sequence[DataFile], merged: DataFile) -> None:
    rows = sum(file.rows for file in files)
    if merged.rows != rows or merged.is_final != files[0].is_final:
        raise DamagedFileError(
            f"{table.name}: {plural(len(files), 'file')} of {plural(rows, 'row')} would become "
            f"{plural(merged.rows, 'row')}",
            remedy=f"nothing was changed; see what is damaged: {SEE_DAMAGE}",
        )
