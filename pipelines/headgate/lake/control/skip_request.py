"""Asks the driver of bronze to skip files that were set aside, with a document that it reads.

The files log has one writer. While a driver runs, no other process may change the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.layout import Layout

_PATH = Layout.document("skip")


@dataclass(frozen=True)
class SkipRequest:
    """Skip the files of ``source`` with these ``sequences`` that are set aside. ``reason`` is kept
    in the ledger."""

    source: str
    sequences: tuple[int, ...]
    reason: str


def ask_to_skip(layout: Layout, wanted: SkipRequest) -> None:
    """Ask the driver that runs now. A new request replaces one that no driver has carried out."""
    write_document(layout.storage, _PATH, encoded(wanted))


def asked_to_skip(layout: Layout) -> SkipRequest | None:
    return read_value(layout.storage, _PATH, SkipRequest)


def has_skipped(layout: Layout) -> None:
    """Remove the request, because it is carried out."""
    layout.storage.remove(_PATH)
