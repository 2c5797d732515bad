"""Small JSON documents: status, lease, stop requests, intents. Each says its schema version."""

from __future__ import annotations

import json
from typing import Any

from headgate.spec.errors import HeadgateError
from headgate.storage.files import Storage

SCHEMA = 1
Document = dict[str, Any]


def write_document(storage: Storage, path: str, content: Document) -> None:
    """Replace the document at ``path`` whole."""
    text = json.dumps({"schema": SCHEMA, **content}, indent=1, sort_keys=True)
    storage.write(path, text.encode() + b"\n")


def read_document(storage: Storage, path: str) -> Document | None:
    """The document at ``path``, None where there is none.

    Raises :class:`HeadgateError` where it is damaged or written by a newer Headgate.
    """
    try:
        raw = storage.read(path)
    except FileNotFoundError:
        return None
    try:
        document = json.loads(raw)
        version = document["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise HeadgateError(
            f"{storage.uri(path)}: the document is damaged ({error})",
            remedy=f"remove it while the pipeline is stopped: rm {storage.uri(path)}",
        ) from error
    if version != SCHEMA:
        raise HeadgateError(
            f"{storage.uri(path)}: schema {version} is newer than this Headgate's {SCHEMA}",
            remedy="upgrade Headgate: uv sync",
        )
    return dict(document)
