"""Small JSON documents: status, lease, stop requests, intents. Each has its schema version and a
checksum of its content, so that a changed byte is detected when it is read."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from hashlib import blake2b
from typing import Any

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.storage.files import Storage
from headgate.storage.format import FORMAT, OF_FORMAT_1, other_format

_CHECKSUM = "checksum"
Document = dict[str, Any]


class DamagedDocumentError(HeadgateError, code=exit_codes.LOG_GAP):
    """A document is not what was written."""


def new_id(now: datetime) -> str:
    """An id for something that is created at the time ``now``. Ids sort by this time."""
    return f"{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"


def write_document(storage: Storage, path: str, content: Document) -> None:
    """Replace the whole document at ``path``."""
    document = {"schema": FORMAT, **content}
    text = json.dumps(document | {_CHECKSUM: _checksum(document)}, indent=1, sort_keys=True)
    storage.write(path, text.encode() + b"\n")


def read_document(storage: Storage, path: str) -> Document | None:
    """The document at ``path``; None if there is none.

    Raises DamagedDocumentError if it is not what was written, :class:`FormatError` if another
    version of Headgate wrote it in another format.
    """
    try:
        raw = storage.read(path)
    except FileNotFoundError:
        return None
    try:
        document = dict(json.loads(raw))
        if OF_FORMAT_1[1] in document:
            raise other_format(storage.uri(path), 1)
        version = document["schema"]
        if _checksum(document) != document.pop(_CHECKSUM):
            raise ValueError("its checksum does not match")
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedDocumentError(
            f"{storage.uri(path)}: the document is damaged ({error})",
            remedy=f"stop the pipeline, then: {pipeline_command('repair')}",
        ) from error
    if version != FORMAT:
        raise other_format(storage.uri(path), version)
    return document


def documents_in(storage: Storage, folder: str) -> list[str]:
    """The paths of the documents directly in a folder, sorted. Temporary files, which a process is
    writing or a killed process has left, are not among them."""
    paths = (stat.path for stat in storage.list(folder))
    return sorted(path for path in paths if _is_document(path.rpartition("/")[2]))


def _is_document(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _checksum(document: Document) -> str:
    said = {key: value for key, value in document.items() if key != _CHECKSUM}
    text = json.dumps(said, sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()
