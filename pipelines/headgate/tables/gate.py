"""What a table asks before new rows become visible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.tables.data_file import DataFile
from headgate.tables.state import State


class Gate(Protocol):
    @property
    def wants_all(self) -> bool:
        """Whether it is asked about commits without files, too."""

    def __call__(self, state: State, add: Sequence[DataFile], remove: Sequence[DataFile]) -> State:
        """Validate the rows that a commit would give; returns the state to commit. Raises HeldError
        if readers must not see them."""
