"""Keeps the declarations that a pipeline's tables were made from, in the pipeline's folder.

Each is stored under the digest of its meaning, so damage is detected. Rules of suites are not part
of the meaning: only the newest ones are kept.
Secrets are placeholders in a declaration's text. Their values may be missing: they may have changed
since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from headgate.commands import pipeline_command
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.history.savepoints.errors import SavepointError
from headgate.lake.storage.documents import ids_in, read_document, write_document
from headgate.lake.storage.layout import Layout


def keep_declaration(layout: Layout, pipeline: Pipeline) -> None:
    """Keep the text of a declaration that tables are made from, and those of its suites. It is then
    the newest one."""
    content = {"file": str(pipeline.file), "text": pipeline.text, "suites": pipeline.suites}
    write_document(layout.storage, Layout.declaration(pipeline.digest), content)


def kept_declarations(layout: Layout) -> Iterator[Pipeline]:
    """The kept declarations that can still be read, the newest one last."""
    return _read(layout, _digests(layout))


def table_made_from(layout: Layout, path: str, definition: str) -> Pipeline | None:
    """The newest kept declaration in which the table at ``path`` has this definition; None if none
    is kept."""
    newest = _read(layout, reversed(_digests(layout)))
    return next((each for each in newest if each.definitions.get(path) == definition), None)


def _digests(layout: Layout) -> list[str]:
    """The digests of the kept declarations, the newest one last."""
    folder = Layout.declaration("").rpartition("/")[0]
    digests = ids_in(layout.storage, folder)
    modified = {stat.path: stat.modified for stat in layout.storage.list(folder)}
    return sorted(digests, key=lambda each: modified[Layout.declaration(each)])


def _read(layout: Layout, digests: Iterable[str]) -> Iterator[Pipeline]:
    for digest in digests:
        with suppress(HeadgateError, KeyError, TypeError):
            yield kept_declaration(layout, digest)


def declaration_of(layout: Layout, pipeline: Pipeline, made_as: Mapping[str, str]) -> str:
    """The digest of the declaration that all of some tables were made from; empty if it is unknown.
    It is that of ``pipeline``, which is then kept, or of a kept declaration. ``made_as`` has the
    tables' own digests by path. Tables that are no longer declared are ignored."""
    if _made_from(pipeline, made_as):
        if not _is_kept(layout, pipeline):
            keep_declaration(layout, pipeline)
        return pipeline.digest
    found = [p.digest for p in kept_declarations(layout) if _made_from(p, made_as)]
    return found[-1] if found else ""


def _is_kept(layout: Layout, pipeline: Pipeline) -> bool:
    """Whether a declaration with the same meaning and the same rules is kept."""
    with suppress(HeadgateError):  # a damaged one is replaced
        kept = read_document(layout.storage, Layout.declaration(pipeline.digest))
        return kept is not None and kept["suites"] == pipeline.suites
    return False


def _made_from(pipeline: Pipeline, made_as: Mapping[str, str]) -> bool:
    return all(made_as.get(path) == digest for path, digest in pipeline.definitions.items())


def kept_declaration(
    layout: Layout, digest: str, *, beside: Path | None = None, needs_secrets: bool = False
) -> Pipeline:
    """The kept declaration with a digest. Relative paths in it refer to ``beside``, by default to
    the file that it was read from. A driver that starts from it ``needs_secrets``.

    Raises SavepointError if it is not kept or is damaged; DeclarationError if it can no longer be
    read.
    """
    document = read_document(layout.storage, Layout.declaration(digest))
    if document is None:
        raise SavepointError(
            f"no declaration with digest {digest[:12]} is kept",
            remedy=f"take it from your version control, and see: {pipeline_command('plan')}",
        )
    file = beside or Path(document["file"])
    text, suites = document["text"], document["suites"]
    pipeline = load(file, text=text, suites=suites, needs_secrets=needs_secrets)
    if pipeline.digest != digest:
        raise SavepointError(
            f"{layout.storage.uri(Layout.declaration(digest))}: this file now contains another "
            "declaration",
            remedy=f"take it from your version control, and see: {pipeline_command('plan')}",
        )
    return pipeline
