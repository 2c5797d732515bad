"""Small JSON documents: status, lease, stop requests, intents. Each has its schema version and a
checksum of its content, so that a changed byte is detected when it is read."""

from __future__ import annotations

import json
import uuid
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.lake.storage.files import Storage
from headgate.lake.storage.format import FORMAT, other_format

_CHECKSUM = "checksum"
Document = dict[str, Any]
T = TypeVar("T")


class DamagedDocumentError(HeadgateError, code=exit_codes.LOG_GAP):
    """A document is not what was written, or lacks a field."""


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
        version = document["schema"]
        if _checksum(document) != document.pop(_CHECKSUM):
            raise ValueError("its checksum does not match")
    except (ValueError, KeyError, TypeError) as error:
        raise damaged_document(storage, path, error) from error
    if version != FORMAT:
        raise other_format(storage.uri(path), version)
    return document


def read_value(storage: Storage, path: str, type_: type[T], **given: Any) -> T | None:
    """The document at ``path`` as a dataclass; None if there is none. ``given`` are the fields that
    the document does not have. Raises as ``read_document``, also if a field is missing or has
    another type."""
    document = read_document(storage, path)
    try:
        return None if document is None else decoded(document | given, type_)
    except ValueError as error:
        raise damaged_document(storage, path, error) from error


def encoded(value: Any) -> Document:
    """The fields of a dataclass, also of those in it, as JSON has them: times in ISO 8601,
    durations in seconds, bytes in base64."""
    return asdict(value, dict_factory=lambda fields: {name: _plain(each) for name, each in fields})


def decoded(content: Mapping[str, Any], type_: type[T]) -> T:
    """The dataclass of which ``content`` is the result of ``encoded``. Keys that are no field are
    ignored. Raises ValueError if a field is missing or has another type."""
    return msgspec.convert(content, type_, strict=False)  # not strict: durations are numbers


def ids_in(storage: Storage, folder: str) -> list[str]:
    """The ids of the documents directly in a folder, sorted: their names without ``.json``.
    Temporary files, which a process is writing or a killed process has left, are not among them."""
    names = (stat.path.rpartition("/")[2] for stat in storage.list(folder))
    return sorted(name.removesuffix(".json") for name in names if _is_document(name))


def _is_document(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def damaged_document(storage: Storage, path: str, why: Exception) -> DamagedDocumentError:
    """The error about a document whose content is not what was written."""
    return DamagedDocumentError(
        f"{storage.uri(path)}: the document is damaged ({why})",
        remedy=f"stop the pipeline, then: {pipeline_command('repair')}",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _checksum(document: Document) -> str:
    said = {key: value for key, value in document.items() if key != _CHECKSUM}
    text = json.dumps(said, sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()
