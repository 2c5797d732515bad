"""What an argument names: a table, a publication, a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from headgate.declaration.kinds import GOLD
from headgate.declaration.nearest import nearest
from headgate.errors import UsageError

if TYPE_CHECKING:
    from headgate.declaration.model import GoldTable, Pipeline

T = TypeVar("T")


def named(known: Mapping[str, T], word: str, what: str, hint: str = "") -> T:
    """What ``word`` names. Otherwise raises UsageError: ``what``, which is such as "shop has no
    publication", the word, the nearest name, all names, and a further ``hint``."""
    if word not in known:
        near = nearest(word, known)
        meant = f' (did you mean "{near}"?)' if near else ""
        names = ", ".join(known) or "none"
        raise UsageError(f"{what} {word!r}{meant}", remedy=f"there are: {names}{hint}")
    return known[word]


def gold_table(declared: Pipeline, word: str, *, gated: bool = False) -> GoldTable:
    """The gold table of this name, with or without its layer; with ``gated``, only one that has
    expectations. Raises UsageError."""
    known = {
        f"gold.{name}": t for name, t in declared.gold.items() if t.suite is not None or not gated
    }
    name = word.removeprefix(f"{GOLD.name}.").removeprefix(GOLD.path(""))
    kind = "gold table with expectations named" if gated else "gold table"
    return named(known, f"gold.{name}", f"{declared.name} has no {kind}")
