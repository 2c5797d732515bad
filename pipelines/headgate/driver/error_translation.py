"""Finds the cause of a failed batch when the error of Spark or Arrow does not name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from headgate.driver.errors import JavaDiedError, PlanError
from headgate.errors import HeadgateError, chain
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.storage.places import split_scheme
from headgate.lake.tables.damage import damage_of_pages, damaged_file
from headgate.lake.tables.errors import FencedError

_PARQUET = re.compile(r"[^\s'\"`\[\](),;]+\.parquet")


def translate_error(
    error: BaseException, layout: Layout, *, java_has_ended: bool = False
) -> HeadgateError | None:
    """An error that names the damaged file of the pipeline, or says that Spark's JVM has died or
    that Spark's checkpoint cannot be read; None if the cause is something else, such as a file of
    the source.

    A file of a table counts as damaged only if reading it page by page fails now.
    """
    if isinstance(error, FencedError):
        return None
    # Without the JVM, any call can fail, and a lost connection has many different messages.
    if java_has_ended:
        return JavaDiedError()
    if isinstance(error, HeadgateError):
        return None
    texts = [text for each in chain(error) for text in str(each).splitlines()]
    for path in dict.fromkeys(path for text in texts for path in _ours(text, layout)):
        if (what := _damage(layout, path)) is not None:
            return damaged_file(layout.storage.uri(path), what)
    checkpoint = layout.storage.uri(f"{CONTROL}/checkpoint/")
    if any(checkpoint in unquote(text) for text in texts):
        return PlanError(
            f"{checkpoint}: Spark's own checkpoint cannot be read any more; no data depends on it",
            remedy="start again: every start begins with a fresh one",
        )
    return None


def _damage(layout: Layout, path: str) -> str | None:
    try:
        return damage_of_pages(layout.storage, path)
    except (OSError, MemoryError):  # of this machine: the error of the batch says so
        return None


def _ours(text: str, layout: Layout) -> Iterator[str]:
    """The Parquet files in the pipeline's folder that one line of a message names."""
    root = f"{split_scheme(layout.storage.root)[1]}/"
    for found in _PARQUET.findall(text):
        _, is_there, path = unquote(found).partition(root)
        if is_there:
            yield path
