"""What the rules of a suite are about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headgate.declaration.expressions.inference import Scope


@dataclass(frozen=True)
class Subject:
    """``scope`` has the columns of the table."""

    scope: Scope


@dataclass(frozen=True)
class RowSubject(Subject):
    """Each row of a silver table."""


@dataclass(frozen=True)
class VersionSubject(Subject):
    """Versions of a gold table. ``silver`` has the columns of its silver table. ``adds_up`` are the
    columns of the gold table whose values may be added up. ``pairs_per_row`` is the number of
    results that each silver row is in; None if that differs from row to row."""

    silver: Scope
    adds_up: Collection[str]
    pairs_per_row: int | None
