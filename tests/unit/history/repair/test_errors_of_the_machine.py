"""A file that this machine cannot open now may be intact: nothing is repaired in its place."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from headgate.lake.storage.files import Storage
from tests.unit.history.repair.conftest import GOLD, Lake


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.EMFILE, "Too many open files"),
    ],
)
def test_a_file_that_cannot_be_opened_now_is_not_repaired(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    (file, *_), opened = lake.data_files(GOLD[0]), Storage.open

    def refused(self: Storage, path: str) -> Any:
        if path.endswith(file.name) and Path(self.uri(path)) == file:
            raise error
        return opened(self, path)

    monkeypatch.setattr(Storage, "open", refused)
    with pytest.raises(OSError, match=str(error.strerror)) as raised:
        lake.examine(tmp_path)
    assert raised.value.errno == error.errno
