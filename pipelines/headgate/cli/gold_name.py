"""The gold table that an argument names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import GoldTable, Pipeline


class NoSuchGoldError(HeadgateError, code=exit_codes.USAGE):
    """There is no gold table of this name."""


def gold_table(declared: Pipeline, name: str) -> GoldTable:
    """Raises NoSuchGoldError."""
    found = declared.gold.get(name.removeprefix("gold."))
    if found is None:
        raise NoSuchGoldError(
            f"{declared.name} has no gold table {name!r}",
            remedy=f"there are: {', '.join(f'gold.{each}' for each in declared.gold)}",
        )
    return found
