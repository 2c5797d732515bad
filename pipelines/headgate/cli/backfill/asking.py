"""The options of a backfill, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headgate.backfill.compatibility import require_compatible, require_windows
from headgate.cli.named import gold_table
from headgate.cli.times import time_range
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline

if TYPE_CHECKING:
    from headgate.backfill.running import Asked


def asked_of(
    declared: Pipeline,
    tables: Sequence[str] | None,
    begin: str,
    end: str | None,
    other: Path | None,
    now: datetime,
    *,
    by_end: bool = False,
) -> Asked:
    """Raises BadParameter, UsageError, DeclarationError, OtherDeclarationError."""
    from headgate.backfill.running import Asked

    first, last = time_range(begin, end, now)
    assert first is not None
    names = [gold_table(declared, name).name for name in tables or declared.gold]
    used = declared if other is None else load(other)
    for name in names:
        require_windows(declared.gold[name])
        if used is not declared:
            require_compatible(declared, used, name)
    return Asked(declared, used, tuple(dict.fromkeys(names)), first, last, by_end)


def expected_of(given: Sequence[str] | None) -> Mapping[str, str] | None:
    """The digests that computed rows must have, by table; None if there is no condition. Raises
    BadParameter."""
    found: dict[str, str] = {}
    for each in given or ():
        name, _, digest = each.removeprefix("gold.").partition("=")
        if not (name and digest):
            raise typer.BadParameter(f"{each!r} is not TABLE=DIGEST", param_hint="--expect")
        if found.setdefault(name, digest) != digest:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--expect")
    return found or None
