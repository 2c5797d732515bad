"""Which small files of a table become one: decisions over what its log says."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from headgate.declaration.kinds import GOLD, kind_of
from headgate.tables.data_file import DataFile


@dataclass(frozen=True)
class Limits:
    """Files below ``small`` bytes are merged where there are at least ``least`` of them, into
    files made of up to ``most`` bytes."""

    small: int = 32 << 20
    least: int = 8
    most: int = 128 << 20


LIMITS = Limits()

Group = tuple[DataFile, ...]


def eligible(
    table: str, live: Iterable[DataFile], upto: int, unpublished: Collection[str]
) -> Iterator[DataFile]:
    """The files that nobody will read by their names: of gold those of final rows, of every other
    table those of batches up to ``upto``, which all tables have absorbed. ``table`` is a path such
    as ``silver/orders``."""
    is_gold = kind_of(table) == GOLD
    for file in live:
        done = file.is_ours and (file.is_final if is_gold else file.n <= upto)
        if done and file.path not in unpublished:
            yield file


def groups(
    files: Iterable[DataFile], cuts: Collection[int] = (), limits: Limits = LIMITS
) -> tuple[Group, ...]:
    """The files that become one, in the order of their batches.

    No group holds rows on both sides of a cut, which is a batch: a table that is built anew stops
    there to carry an operation out.
    """
    places = sorted(set(cuts))
    small = sorted((f for f in files if f.size < limits.small), key=lambda f: (f.n, f.path))
    sections = groupby(small, key=lambda f: bisect_left(places, f.n))
    return tuple(group for _, section in sections for group in _filled(tuple(section), limits))


def _filled(section: Group, limits: Limits) -> Iterator[Group]:
    if len(section) < limits.least:
        return
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
