"""Finds the replays of late rows that a rebuild of a gold table does not repeat: pure functions.

A replay is stored as it was requested: by values of the columns of ``by``. If a declaration has
other columns in ``by``, it is no longer known which rows were meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.lake.tables.operation import Operation

Definition = Mapping[str, Any]


def late_again(
    table: str,
    before: Definition | None,
    after: Definition,
    asked: Iterable[Operation],
    *,
    rereads: bool,
    folded: Collection[str] = (),
) -> Iterator[str]:
    """Messages about the replays of a gold table that is rebuilt. ``before`` and ``after`` are the
    meanings of the deployed declaration, if it is kept, and of the new one. ``rereads``: bronze
    is read again, and the new bronze does not have the replays. ``folded`` are the loads whose late
    rows are then folded again."""
    of_late = (each.document for each in asked if each.name == "late_replay")
    replays = [each for each in of_late if each["table"] == table]
    if rereads:
        # A load in ``folded`` requests its replays again.
        if lost := [each for each in replays if each.get("load") not in folded]:
            yield f"{_Counted(len(lost))} will not be repeated, and the rows will be late again"
        return
    new = _by(after, table)
    old = None if before is None else _by(before, table)
    gone, changed = _Counted(), _Counted()
    for each in replays:
        keys = each["keys"]
        if old is not None and keys.keys() - old.keys():
            continue  # its rows are late already
        if missing := [key for key in keys if key not in new]:
            gone.add(missing)
        elif others := [key for key in keys if old is not None and old[key] != new[key]]:
            changed.add(others)
    if gone.number:
        yield f"{gone} cannot be repeated, and their rows will be late again"
    if changed.number:
        yield f"{changed} will be repeated with the new meaning, and some rows may be late again"


@dataclass
class _Counted:
    """Replays of late rows, and the keys that concern them."""

    number: int = 0
    keys: set[str] = field(default_factory=set)

    def add(self, keys: Iterable[str]) -> None:
        self.number += 1
        self.keys.update(keys)

    def __str__(self) -> str:
        by = f" by {', '.join(sorted(self.keys))}" if self.keys else ""
        return f"{self.number:,} replay{'' if self.number == 1 else 's'} of late rows{by}"


def _by(meaning: Definition, table: str) -> dict[str, Any]:
    return {each["name"]: each for each in meaning["gold"].get(table, {}).get("by", ())}
