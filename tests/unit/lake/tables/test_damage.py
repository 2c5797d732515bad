"""A file of a table is damaged only if its content is. An error of the machine is not damage."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.damage import (
    damage_of,
    damage_of_pages,
    read_sound,
    require_sound,
    sound_batches,
)
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import DamagedFileError
from tests.support.damage import HARMS, harm
from tests.unit.lake.tables.conftest import Open

READS: dict[str, Callable[[Storage, DataFile], object]] = {
    "require_sound": lambda storage, file: require_sound(storage, [file]),
    "read_sound": read_sound,
    "sound_batches": lambda storage, file: list(sound_batches(storage, file, ["id"])),
    "damage_of": damage_of,
    "damage_of_pages": lambda storage, file: damage_of_pages(storage, file.path),
}
OF_THE_MACHINE = [
    PermissionError(errno.EACCES, "Permission denied"),
    OSError(errno.EMFILE, "Too many open files"),
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    pa.ArrowMemoryError("malloc of size 9 failed"),
]


@pytest.fixture
def written(open_table: Open) -> tuple[Storage, DataFile]:
    table = open_table()
    rows = pa.table({"id": [str(each) for each in range(1000)]})
    (file,) = stage_arrow(table, table.state, rows, time_column="time")
    return table.storage, file


def is_told(raised: BaseException, error: Exception, written: tuple[Storage, DataFile]) -> bool:
    """Whether the error was raised, with the address of the file."""
    if not isinstance(error, OSError):
        return raised is error
    storage, file = written
    address = storage.uri(file.path)
    return isinstance(raised, OSError) and (raised.errno, raised.filename) == (error.errno, address)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("error", OF_THE_MACHINE, ids=lambda each: str(each.args[0]))
def test_an_error_of_the_machine_is_no_damage(
    written: tuple[Storage, DataFile],
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Storage, DataFile], object],
    error: Exception,
) -> None:
    def refused(self: Storage, path: str) -> Any:
        raise error

    monkeypatch.setattr(Storage, "open", refused)
    with pytest.raises(type(error)) as raised:
        read(*written)
    assert is_told(raised.value, error, written)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_object_store_that_does_not_answer_is_no_damage(
    written: tuple[Storage, DataFile], read: Callable[[Storage, DataFile], object]
) -> None:
    storage, file = Storage("s3://bucket/table"), written[1]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nothing listens
        store = fs.S3FileSystem(
            access_key="a",
            secret_key="b",
            endpoint_override=f"http://127.0.0.1:{closed.getsockname()[1]}",
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
        )
        vars(storage)["_filesystem"] = store, "bucket/table"
        with pytest.raises(OSError, match="NETWORK_CONNECTION during HeadObject"):
            read(storage, file)


@pytest.mark.parametrize("read", ["read_sound", "sound_batches", "damage_of", "damage_of_pages"])
def test_nor_is_one_while_the_pages_are_read(
    written: tuple[Storage, DataFile], monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    error = OSError(errno.EIO, "Input/output error")

    def fails(*_: object, **__: object) -> Any:
        raise error

    monkeypatch.setattr("headgate.lake.tables.damage.pq.ParquetFile", fails)
    with pytest.raises(OSError, match="Input/output") as raised:
        READS[read](*written)
    assert is_told(raised.value, error, written)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_file_without_rights_is_no_damage(
    written: tuple[Storage, DataFile], read: Callable[[Storage, DataFile], object]
) -> None:
    Path(written[0].uri(written[1].path)).chmod(0)
    with pytest.raises(PermissionError):
        read(*written)


@pytest.mark.parametrize("how", HARMS)
@pytest.mark.parametrize("read", READS)
def test_a_file_with_another_content_is_damaged(
    written: tuple[Storage, DataFile], read: str, how: str
) -> None:
    storage, file = written
    harm(Path(storage.uri(file.path)), how)
    if read.startswith("damage_of"):
        assert READS[read](storage, file)
    elif (read, how) != ("require_sound", "flipped"):  # only the pages have this checksum
        with pytest.raises(DamagedFileError):
            READS[read](storage, file)


def test_a_folder_in_the_place_of_a_file_is_damage(written: tuple[Storage, DataFile]) -> None:
    storage, file = written
    Path(storage.uri(file.path)).unlink()
    Path(storage.uri(file.path)).mkdir()
    with pytest.raises(DamagedFileError, match="is a directory"):
        read_sound(storage, file)
