"""Ways to damage a file."""

from __future__ import annotations

import shutil
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq

HARMS = ("truncated", "emptied", "flipped", "missing")


def harm(file: Path, how: str) -> None:
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    elif how == "emptied":
        file.write_bytes(b"")
    elif how == "truncated":
        file.write_bytes(content[: len(content) // 2])
    else:
        flipped = bytearray(content)
        flipped[_inside(content)] ^= 1
        file.write_bytes(flipped)


def has_checkpoint(root: Path) -> bool:
    """Whether Spark has left a checkpoint of a stream of ``readings``."""
    return any(root.rglob("checkpoint/**/offsets/*"))


def spoil_checkpoint(root: Path, number: int) -> None:
    """Damage every file of Spark's checkpoint, or delete all of it: it is disposable at any
    moment."""
    checkpoint = root / "readings/_headgate/checkpoint"
    if number % 2:
        shutil.rmtree(checkpoint, ignore_errors=True)
        return
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    for file, how in zip(files, cycle(HARMS), strict=False):
        harm(file, how)


def flip_an_id(file: Path, column: str = "event_id") -> None:
    """Change an id. The page stays readable; only its checksum shows the change."""
    group = pq.read_metadata(file).row_group(0)
    columns = (group.column(i) for i in range(group.num_columns))
    ids = next(c for c in columns if c.path_in_schema == column)
    content = bytearray(file.read_bytes())
    content[ids.data_page_offset + ids.total_compressed_size - 1] ^= 1
    file.write_bytes(content)


def _inside(content: bytes) -> int:
    """The position of a byte with a meaning: in a log entry a byte that the checksum covers, else
    the middle."""
    sealed = content.rfind(b'"epoch":')
    return sealed + len(b'"epoch":') if sealed >= 0 else len(content) // 2
