"""Checksums that detect damage in a log: of each commit, and of the set of live files.

Delta logs and their checkpoints have no checksums. So every commit carries two: a checksum of its
own metadata and files, and a digest of all live files after it. The digest is a sum over files, so
a commit updates it from the files that it adds and removes, without reading the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from headgate.lake.tables.data_file import DataFile

_BYTES = 16
_SPACE = 1 << (8 * _BYTES)

NO_FILES = "0" * (2 * _BYTES)
"""The digest of an empty table."""


def digest_of(files: Iterable[DataFile]) -> str:
    """The digest of a set of live files, in hexadecimal; their order does not matter."""
    return digest_after(NO_FILES, files, ())


def digest_after(digest: str, added: Iterable[DataFile], removed: Iterable[DataFile]) -> str:
    """The digest of a set that had ``digest``, after some files were added and others removed."""
    total = int(digest, 16) + sum(map(_number, added)) - sum(map(_number, removed))
    return f"{total % _SPACE:0{2 * _BYTES}x}"


def schema_digest(schema: str, partition_by: Sequence[str]) -> str:
    """The digest of a table's columns: the schema as Delta's JSON, and the partition columns."""
    text = json.dumps([json.loads(schema), list(partition_by)], sort_keys=True)
    return blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def checksum_of(
    content: Mapping[str, Any], added: Iterable[DataFile], removed: Iterable[str]
) -> str:
    """The checksum of a commit's metadata (JSON values), the files it adds, and the paths it
    removes."""
    text = json.dumps(
        [content, sorted(map(_text, added)), sorted(removed)], sort_keys=True, ensure_ascii=True
    )
    return blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def _number(file: DataFile) -> int:
    return int.from_bytes(blake2b(_text(file).encode(), digest_size=_BYTES).digest(), "big")


def _text(file: DataFile) -> str:
    partition = sorted(file.partition.items())
    return json.dumps([file.path, file.size, file.stats, partition], ensure_ascii=True)
