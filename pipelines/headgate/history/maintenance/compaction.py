"""Decides which small files of a table are merged, from its log alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from headgate.declaration.kinds import GOLD, kind_of
from headgate.lake.tables.data_file import DataFile


@dataclass(frozen=True)
class CompactionLimits:
    """Files below ``small`` bytes are merged if a table has at least ``least`` of them that can be
    merged. A merged file replaces at most ``most`` bytes, unless the files of one batch have
    more."""

    small: int = 32 << 20
    least: int = 8
    most: int = 128 << 20


DEFAULT_LIMITS = CompactionLimits()

Group = tuple[DataFile, ...]


def eligible(
    table: str, live: Iterable[DataFile], upto: int, unpublished: Collection[str]
) -> Iterator[DataFile]:
    """The files that no stage will read by name: in gold, files of final rows; in every other
    table, files of batches up to ``upto``, which all tables have processed. ``table`` is a path
    such as ``silver/orders``."""
    is_gold = kind_of(table) == GOLD
    for file in live:
        done = file.is_ours and (file.is_final if is_gold else file.n <= upto)
        if done and file.path not in unpublished:
            yield file


def groups(
    files: Iterable[DataFile],
    boundaries: Collection[int] = (),
    limits: CompactionLimits = DEFAULT_LIMITS,
) -> tuple[Group, ...]:
    """Groups of files to merge, in the order of their batches.

    ``boundaries`` are batch ids. No group has rows on both sides of one, because a rebuild stops
    there to carry out an operation. A file that is alone between two of them cannot be merged.
    """
    places = sorted(set(boundaries))
    small = sorted((f for f in files if f.size < limits.small), key=lambda f: (f.n, f.path))
    sections = (tuple(found) for _, found in groupby(small, lambda f: bisect_left(places, f.n)))
    mergeable = [section for section in sections if len(section) > 1]
    if sum(map(len, mergeable)) < limits.least:
        return ()
    return tuple(group for section in mergeable for group in _filled(section, limits))


def _filled(section: Group, limits: CompactionLimits) -> Iterator[Group]:
    group: list[DataFile] = []
    size = 0
    for _, files in groupby(section, key=lambda f: f.n):
        batch = tuple(files)
        added = sum(f.size for f in batch)
        if group and size + added > limits.most:
            if len(group) > 1:
                yield tuple(group)
            group, size = [], 0
        group += batch
        size += added
    if len(group) > 1:
        yield tuple(group)
