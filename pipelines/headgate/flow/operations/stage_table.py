"""The tables at which operations are carried out, and the changes that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headgate.declaration.contracts.operation import Document
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Follow(Protocol):
    """``closes`` as in the contract of operations."""

    def __call__(self, place: StageTable, state: State, *, closes: bool) -> Change: ...


@dataclass(frozen=True)
class StageTable:
    """A table of a stage. ``rows`` reads some of its files, with the states of open rows.
    ``time_column`` is the column for which files have bounds. ``end`` is the time when a result of
    gold is complete, in microseconds since 1970 UTC; None if it never is. ``key`` are the columns
    that identify a row of gold, ``counter`` is its first ``count(*)``, if it has one.
    ``end_varies`` as in the operator's contract. ``replay``
    computes how a replay of late pairs changes the table, ``give_up`` how a table takes that back
    before its gold table has it; None if the stage does not replay. ``drain`` computes how a drain
    changes a gold table; None if its open rows become final. ``follow`` computes how an operation
    changes a rollup; None for other tables."""

    table: Table
    rows: Callable[[Sequence[DataFile]], DataFrame]
    time_column: str
    end: Column | None = None
    key: tuple[str, ...] = ()
    counter: str | None = None
    end_varies: bool = False
    replay: Callable[[StageTable, State, Document], Change] | None = None
    give_up: Callable[[StageTable, State, Document], Change] | None = None
    drain: Callable[[StageTable, State], Change] | None = None
    follow: Follow | None = None


@dataclass(frozen=True)
class Change:
    """One commit of an operation: the state after it, and the added and removed files. ``moved``
    are added files whose rows were in removed files before."""

    state: State
    add: Sequence[DataFile] = ()
    remove: Sequence[DataFile] = ()
    moved: Sequence[DataFile] = ()
