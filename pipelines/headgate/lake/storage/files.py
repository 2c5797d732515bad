"""Access to storage: the engine reads and writes every path through :class:`Storage`.

Paths are relative to ``root``, with forward slashes. On local disk a write is atomic (a temporary
name, then a rename); on an object store a put is always atomic.
"""

from __future__ import annotations

import os
import shutil
import stat as modes
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.lake.storage.places import is_uri

if TYPE_CHECKING:
    # Imported only by code that accesses a file: Airflow parses DAG files every few seconds, and
    # DAG files only name paths.
    import pyarrow as pa
    from pyarrow import fs

_CHUNK = 1 << 22
_EPOCH, _SECOND = datetime(1970, 1, 1, tzinfo=UTC), 1_000_000
_FIRST, _END = -61_851_600_000 * _SECOND, 253_086_768_000 * _SECOND  # the years 10 to 9989


class FileNameError(HeadgateError, code=exit_codes.SOURCE):
    """A file has a name that is not valid UTF-8, so no log can contain it."""


@dataclass(frozen=True)
class Stat:
    """One file: ``path`` relative to the storage root, ``size`` in bytes, ``modified`` in UTC."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Storage:
    """A folder, local or on an object store. ``root`` is an absolute path or a URI."""

    root: str

    @cached_property
    def _filesystem(self) -> tuple[fs.FileSystem, str]:
        from pyarrow import fs

        if is_uri(self.root):
            filesystem, base = fs.FileSystem.from_uri(self.root)
            return filesystem, base
        return fs.LocalFileSystem(), self.root

    @property
    def is_local(self) -> bool:
        from pyarrow import fs

        return isinstance(self._filesystem[0], fs.LocalFileSystem)

    def uri(self, path: str = "") -> str:
        """The full address of ``path``, in the form that Spark and delta-rs accept."""
        return f"{self.root}/{path}" if path else self.root

    def at(self, path: str) -> Storage:
        return Storage(self.uri(path))

    def __reduce__(self) -> tuple[type[Storage], tuple[str]]:
        return Storage, (self.root,)  # without the open filesystem

    def _full(self, path: str) -> str:
        base = self._filesystem[1]
        return f"{base}/{path}" if path else base

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises FileNotFoundError."""
        with self._filesystem[0].open_input_stream(self._full(path), compression=None) as stream:
            content: bytes = stream.read()
            return content

    def open(self, path: str) -> pa.NativeFile:
        """A seekable file, for readers of Parquet footers."""
        return self._filesystem[0].open_input_file(self._full(path))

    def write(self, path: str, content: bytes) -> None:
        """Replace one whole file: a reader sees either the old or the new bytes, never a part."""
        filesystem, target = self._filesystem[0], self._full(path)
        filesystem.create_dir(target.rsplit("/", 1)[0], recursive=True)
        written = f"{target}.{uuid.uuid4().hex[:8]}.tmp" if self.is_local else target
        try:
            with filesystem.open_output_stream(written, compression=None) as stream:
                stream.write(content)
            if written != target:
                filesystem.move(written, target)
        except BaseException:
            if written != target:
                with suppress(OSError):
                    filesystem.delete_file(written)
            raise

    def create(self, path: str) -> pa.NativeFile:
        """Open a new file that is written piece by piece. Nothing may refer to it before it is
        closed."""
        self._filesystem[0].create_dir(self._full(path).rpartition("/")[0], recursive=True)
        return self._filesystem[0].open_output_stream(self._full(path), compression=None)

    def copy(self, path: str, to: Storage) -> None:
        """Copy one file to the same path of another storage. Raises FileNotFoundError."""
        target = to._filesystem[0]
        target.create_dir(to._full(path).rpartition("/")[0], recursive=True)
        with (
            self._filesystem[0].open_input_stream(self._full(path), compression=None) as source,
            target.open_output_stream(to._full(path), compression=None) as sink,
        ):
            shutil.copyfileobj(source, sink, _CHUNK)

    def list(self, path: str = "", *, recursive: bool = False) -> Iterator[Stat]:
        """The files under ``path``, in no particular order; empty if the folder does not exist.

        Raises FileNameError if a name is not UTF-8.
        """
        from pyarrow import fs

        selector = fs.FileSelector(self._full(path), recursive=recursive, allow_not_found=True)
        base = self._filesystem[1].rstrip("/")
        for info in self._infos(selector):
            if info.type == fs.FileType.File:
                yield _stat(info, _path(info)[len(base) + 1 :])

    def _infos(self, selector: fs.FileSelector) -> Sequence[fs.FileInfo]:
        try:
            found: Sequence[fs.FileInfo] = self._filesystem[0].get_file_info(selector)
        except FileNotFoundError:
            # Another process is creating the folder: Arrow did not find it at first and found it
            # later.
            found = self._filesystem[0].get_file_info(selector)
        return found

    def stat(self, path: str) -> Stat | None:
        from pyarrow import fs

        if self.is_local:  # Arrow returns other times than those of a file before 1678, after 2262
            return _local_stat(self._full(path), path)
        info = self._filesystem[0].get_file_info(self._full(path))
        return _stat(info, path) if info.type == fs.FileType.File else None

    def exists(self, path: str) -> bool:
        from pyarrow import fs

        found = self._filesystem[0].get_file_info(self._full(path)).type
        return bool(found != fs.FileType.NotFound)

    def folders(self, path: str = "") -> tuple[str, ...]:
        """The names of the folders directly under ``path``, sorted."""
        from pyarrow import fs

        selector = fs.FileSelector(self._full(path), allow_not_found=True)
        found = self._infos(selector)
        return tuple(sorted(i.base_name for i in found if i.type == fs.FileType.Directory))

    def make_folder(self, path: str = "") -> None:
        self._filesystem[0].create_dir(self._full(path), recursive=True)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with its contents. Does nothing if neither exists."""
        from pyarrow import fs

        filesystem, target = self._filesystem[0], self._full(path)
        kind = filesystem.get_file_info(target).type
        if kind == fs.FileType.Directory:
            filesystem.delete_dir(target)
        elif kind == fs.FileType.File:
            filesystem.delete_file(target)


def _path(info: fs.FileInfo) -> str:
    try:
        return str(info.path)
    except UnicodeDecodeError as error:
        raise FileNameError(
            f"{error.object!r}: this file's name is not UTF-8, so no log can hold it",
            remedy="give the file another name, or move it out of the folder",
        ) from error


def _stat(info: fs.FileInfo, path: str) -> Stat:
    return Stat(path, info.size, _moment(info.mtime_ns or 0))


def _local_stat(full: str, path: str) -> Stat | None:
    try:
        found = os.stat(full)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat_of(path, found) if modes.S_ISREG(found.st_mode) else None


def stat_of(path: str, found: os.stat_result) -> Stat:
    """The file at ``path``. A time outside the years 10 to 9989, as those of events, is in their
    first or last second."""
    return Stat(path, found.st_size, _moment(found.st_mtime_ns))


def _moment(nanos: int) -> datetime:
    micros = nanos // 1_000
    if not _FIRST <= micros < _END:
        micros = (_FIRST if micros < _FIRST else _END - _SECOND) + micros % _SECOND
    return _EPOCH + timedelta(microseconds=micros)
