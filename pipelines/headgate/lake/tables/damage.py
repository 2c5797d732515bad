"""Detects damaged data files.

Parquet has a checksum for each page, but none for the footer, which describes the pages. A flipped
bit in it can rename a column, and a reader then reads nulls. So the commit that adds a file records
its footer's checksum, and a stage compares it before it reads the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.commands import SEE_DAMAGE
from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.live_files import live_files

if TYPE_CHECKING:
    from headgate.lake.tables.table import Table

_ROWS = 65_536  # read at once
_OF_STORE = ("AWS Error", "Generic S3 error")  # in messages of Arrow and delta-rs
_TAIL = 8  # bytes: the footer's length and Parquet's magic number


def footer_checksum(file: pa.NativeFile) -> int:
    """The CRC-32 of a Parquet file's footer. Raises ValueError if the file has no footer."""
    size = file.size()
    if size < _TAIL:
        raise ValueError("it has no footer")
    file.seek(size - _TAIL)
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    if length > size - _TAIL:
        raise ValueError("it has no footer")
    file.seek(size - _TAIL - length)
    return crc32(file.read(length) + tail)


def require_sound(storage: Storage, files: Iterable[DataFile]) -> None:
    """Check the footers of some files before they are read. Readers check the pages.

    Raises DamagedFileError if a file is missing or its footer is not what was written, and an
    error of the machine (``is_of_machine``) as it is, as everything here that reads a file.
    """
    for file in files:
        if (what := _wrong_end(storage, file)) is not None:
            raise damaged_file(storage.uri(file.path), what)


def require_present(table: Table) -> None:
    """Check in one listing that every live file exists and has its size.

    Raises DamagedFileError. The contents of the files are checked only when they are read.
    """
    sizes = {stat.path: stat.size for stat in table.storage.list("data", recursive=True)}
    for file in live_files(table.handle):
        if not file.is_ours and (stat := table.storage.stat(file.path)):
            sizes[file.path] = stat.size
        if (size := sizes.get(file.path)) != file.size:
            what = "is missing" if size is None else f"has {size:,} bytes, had {file.size:,}"
            raise damaged_file(table.storage.uri(file.path), what)


def is_of_machine(error: Exception) -> bool:
    """Whether an error of Arrow or Python is about the machine or the object store: a missing
    permission, too little memory, too many open files, no network. The file that it was about may
    be intact. An error about the content of a file has no number; one of a store has none, either.
    """
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
        return False
    return error.errno is not None or any(said in str(error) for said in _OF_STORE)


def is_about_reading(error: Exception) -> bool:
    """Whether an error of DuckDB or Arrow may come from a damaged file. An error of the machine
    does not."""
    if is_of_machine(error):
        return False
    said = str(error)
    if any(reason in said for reason in ("Permission denied", "No space left", "Read-only file")):
        return False
    return isinstance(error, OSError) or any(
        word in said for word in ("FileNotFoundError", "IOError", "OSError", "reading the stream")
    )


def require_readable(tables: Iterable[Table]) -> None:
    """Read every live file of the newest versions, to find out why rows could not be read. Raises
    DamagedFileError, LogGapError."""
    found = list(tables)
    for table in found:
        table.refresh()
        require_present(table)
    for table in found:
        for file in live_files(table.handle):
            if (what := damage_of(table.storage, file)) is not None:
                raise damaged_file(table.storage.uri(file.path), what)


@contextmanager
def naming_damage(tables: Callable[[], Iterable[Table]]) -> Iterator[None]:
    """Raises DamagedFileError or LogGapError in place of an error of DuckDB or Arrow, if one of
    these tables is damaged."""
    try:
        yield
    except Exception as error:
        if is_about_reading(error):
            require_readable(tables())
        raise


def read_sound(storage: Storage, file: DataFile, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a small file, or some ``columns`` of them. Every page is checked. Raises
    DamagedFileError."""
    require_sound(storage, [file])
    try:
        with storage.open(file.path) as source:
            return pq.ParquetFile(source, page_checksum_verification=True).read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(storage, file, error) from error


def sound_batches(
    storage: Storage, file: DataFile, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in pieces, with those of ``columns`` that the file has. Every page is
    checked. Raises DamagedFileError."""
    require_sound(storage, [file])
    try:
        with storage.open(file.path) as source:
            parquet = pq.ParquetFile(source, page_checksum_verification=True)
            held = [name for name in columns if name in parquet.schema_arrow.names]
            # One row group at a time: a piece of several row groups could fill the memory.
            for group in range(parquet.num_row_groups):
                yield from parquet.iter_batches(_ROWS, row_groups=[group], columns=held)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(storage, file, error) from error


def _unreadable(storage: Storage, file: DataFile, error: Exception) -> DamagedFileError:
    address = storage.uri(file.path)
    return damaged_file(address, _cannot_be_read(address, error))


def _cannot_be_read(address: str, error: Exception) -> str:
    """The message about an error of a reader of the file at ``address``. Raises the error if it is
    the machine's, with the address, because an error of Arrow has none."""
    if is_of_machine(error):
        if isinstance(error, OSError) and error.errno and error.filename is None:
            raise OSError(error.errno, error.strerror or str(error), address) from error
        raise error
    return f"cannot be read: {str(error).splitlines()[0][:200]}"


def damaged_file(uri: str, what: str) -> DamagedFileError:
    return DamagedFileError(
        f"{uri} {what}", remedy=f"see what would repair it: {SEE_DAMAGE}", at=uri
    )


def damage_of(storage: Storage, file: DataFile) -> str | None:
    """A message about the damage of a file; None if the checksums of its footer and all pages match
    and no row is missing."""
    return _wrong_end(storage, file) or damage_of_pages(storage, file.path, file.rows)


def damage_of_pages(storage: Storage, path: str, had: int | None = None) -> str | None:
    """A message about the damage of a file; None if it can be read, the checksums of all pages
    match, and it has as many rows as it ``had``, if this is known."""
    try:
        with storage.open(path) as source:
            parquet = pq.ParquetFile(source, page_checksum_verification=True)
            rows = sum(batch.num_rows for batch in parquet.iter_batches(_ROWS))
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        return _cannot_be_read(storage.uri(path), error)
    return None if had in (None, rows) else f"has {rows:,} rows, had {had:,}"


def _wrong_end(storage: Storage, file: DataFile) -> str | None:
    try:
        with storage.open(file.path) as source:
            if source.size() != file.size:
                return f"has {source.size():,} bytes, had {file.size:,}"
            if file.footer not in (None, footer_checksum(source)):
                return "has a footer that differs from the one written"
    except FileNotFoundError:
        return "is missing"
    except (OSError, ValueError) as error:
        return _cannot_be_read(storage.uri(file.path), error)
    return None
