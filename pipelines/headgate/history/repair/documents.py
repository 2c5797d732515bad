"""Damaged documents, and what is lost with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import Hold, Rejection, Release, ShownRows
from headgate.flow.publish.sinks.letters import Letter
from headgate.history.repair.plan import Damage
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.control.claim import Claim
from headgate.lake.control.driver_reports import Failure
from headgate.lake.control.driver_requests import SkipRequest, StopRequest
from headgate.lake.control.requests import Request
from headgate.lake.storage.documents import Document, decoded, read_document
from headgate.lake.storage.layout import CONTROL, Layout

_MEANS = {
    "lease": "the lease: a running driver is fenced off; the epochs are in the tables",
    "status": "the status of a job: the next start writes it again",
    "ends": "where batches may end: planned again at the next start",
    "stop": "a request to stop: it is removed; ask again",
    "maintenance": "a request for maintenance: it is removed; ask again",
    "maintained": "the report of a job on maintenance: the next maintenance writes a new one",
    "failure": "why the last start failed: unknown until a start fails again",
    "pause": "the pause is removed: the pipeline reads new data, until: "
    + pipeline_command("pause"),
    "skip": "a request to skip files that are set aside is removed: ask again, "
    + pipeline_command("files skip"),
    "requests": "a request that waits is removed: ask again",
    "dead_letters": "a row that a sink has refused is not sent again; it stays in its table",
    "copy": "that this is a copy: do not let it publish to a table that the original fills",
    "gates": "why a gold table is held, or its release: the next validation decides again",
    "releases": "what a person has released: rows that it has let pass hold gold again",
    "savepoints": "this savepoint is lost, and its name with it; others and the tables stay",
    "declarations": "the text of a declaration that tables or savepoints were made from; that of "
    "today's is kept again at the next start, an older one is in your version control",
}
_TYPES: Mapping[str, type] = {
    "failure.json": Failure,
    "skip.json": SkipRequest,
    "stop.json": StopRequest,
    "supervisor.json": Claim,
    "requests/*.json": Request,
    "dead_letters/*.json": Letter,
    "gates/*.held.json": Hold,
    "gates/*.release.json": Release,
    "gates/*.rows.json": ShownRows,
    "gates/*.reject.json": Rejection,
    "releases/*/*.json": Release,
}
"""What documents with these paths are read as. Whoever reads one that lacks a field is told to
repair."""
_FOLDERS = ("savepoints", "declarations", "gates", "requests")
_WITH_FOLDERS = ("dead_letters", "releases")
_UNKNOWN = "its content is unknown: it is put aside as it is"
LEASES = f"{CONTROL}/lease-"
UNFINISHED = Layout.document("clone")


@dataclass(frozen=True)
class DamagedDocument:
    """A document whose content is not what was written, or that lacks a field; ``means`` is the
    effect of putting it aside."""

    path: str
    what: str
    means: str

    @property
    def description(self) -> str:
        return f"{self.path}: put aside ({self.means})"

    @property
    def finding(self) -> Damage:
        return Damage(self.path, self.what, "document")


def damaged_documents(layout: Layout) -> tuple[DamagedDocument, ...]:
    """Every document that exists and is damaged. A missing document is not damage."""
    return tuple(
        DamagedDocument(path, what, _means(path))
        for path in sorted(_documents(layout))
        if (what := _wrong(layout, path)) is not None
    )


def _documents(layout: Layout) -> Iterator[str]:
    nested = (
        f"{top}/{name}"
        for top in _WITH_FOLDERS
        for name in layout.storage.folders(f"{CONTROL}/{top}")
    )
    for folder in ("", *_FOLDERS, *nested):
        for stat in layout.storage.list(f"{CONTROL}/{folder}".rstrip("/")):
            if stat.path.endswith(".json"):
                yield stat.path


def _wrong(layout: Layout, path: str) -> str | None:
    try:
        document = read_document(layout.storage, path)
        if document is not None:
            _check(path, document)
    except HeadgateError as error:
        return error.message.partition(": ")[2] or error.message
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"the document is damaged ({error})"
    return None


def _check(path: str, document: Document) -> None:
    name = path.removeprefix(f"{CONTROL}/")
    for pattern, type_ in _TYPES.items():
        if fnmatchcase(name, pattern):
            # A request has its id only in its name.
            decoded({"id": "", **document} if type_ is Request else document, type_)
    is_savepoint = path.startswith(Layout.savepoint("").rpartition("/")[0])
    if is_savepoint and Layout.savepoint(Savepoint.from_document(document).id) != path:
        raise ValueError("it is another savepoint's")


def _means(path: str) -> str:
    name = path.removeprefix(f"{CONTROL}/")
    return _MEANS.get(
        name.partition("/" if "/" in name else "-")[0].removesuffix(".json"), _UNKNOWN
    )
