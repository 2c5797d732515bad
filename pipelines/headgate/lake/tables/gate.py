"""The interface of a gate, which a table calls before new rows become visible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.state import State


class Gate(Protocol):
    @property
    def wants_all(self) -> bool:
        """Whether the gate is also called for commits without files."""

    def __call__(self, state: State, add: Sequence[DataFile], remove: Sequence[DataFile]) -> State:
        """Validate the rows that the table would have after a commit, and return the state to
        commit. Raises HeldError if readers must not see these rows."""
