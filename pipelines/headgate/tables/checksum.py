"""Digests by which a log proves itself: of what a commit says, and of the files that are live.

Delta logs and their checkpoints have no checksums. So every commit carries two: a checksum of its
own metadata and files, and a digest of the whole set of live files after it. The second is a sum,
so a commit adds and subtracts what it adds and removes, and never looks at the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from headgate.tables.data_file import DataFile

_BYTES = 16
_SPACE = 1 << (8 * _BYTES)

NO_FILES = "0" * (2 * _BYTES)
"""The digest of an empty table."""


def digest_of(files: Iterable[DataFile]) -> str:
    """The digest of a set of live files, in hexadecimal; their order does not matter."""
    return digest_after(NO_FILES, files, ())


def digest_after(digest: str, added: Iterable[DataFile], removed: Iterable[DataFile]) -> str:
    """The digest of a set that had ``digest``, after some files came and others went."""
    total = int(digest, 16) + sum(map(_number, added)) - sum(map(_number, removed))
    return f"{total % _SPACE:0{2 * _BYTES}x}"


def schema_digest(schema: str, partition_by: Sequence[str]) -> str:
    """The digest of a table's columns: Delta's JSON, and what its files are partitioned by."""
    text = json.dumps([json.loads(schema), list(partition_by)], sort_keys=True)
    return blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def checksum_of(
    content: Mapping[str, Any], added: Iterable[DataFile], removed: Iterable[str]
) -> str:
    """The checksum of a commit: of what it says (JSON values), the files it adds, the paths it
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
