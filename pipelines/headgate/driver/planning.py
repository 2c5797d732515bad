"""Reads which batches Spark has planned."""

from __future__ import annotations

import json

from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout


def planned_end(storage: Storage, checkpoint: str, batch: int) -> int:
    """The end of a planned batch, from Spark's offset log. The last line is the source's offset."""
    lines = storage.read(f"{checkpoint}/offsets/{batch}").decode().splitlines()
    return int(json.loads(lines[-1])["end"])


def ends_path(layer: str) -> str:
    """The path of the document that the reference source reads."""
    return Layout.document(f"ends-{layer}")
