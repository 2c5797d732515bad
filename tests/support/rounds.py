"""How much of a long proof is run: a part of it by default, all of it if rounds are set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

ROUNDS = int(os.environ.get("HEADGATE_CHAOS_ROUNDS", "0"))
"""How often random tests repeat an action; 0 by default."""
IN_FULL = ROUNDS > 0

in_full = pytest.mark.skipif(not IN_FULL, reason="a long proof: `make chaos` or `make nightly`")

Case = TypeVar("Case", bound=tuple[object, ...])


def some(cases: Sequence[Case], one_in: int, start: int = 0) -> list[object]:
    """One in ``one_in`` cases, or all of them in a full run; all except the first are ``long``.

    For a product of values, ``one_in`` should not divide the number of cases, so that each value
    occurs.
    """
    kept = cases if IN_FULL else cases[start::one_in]
    marks = pytest.mark.long
    return [pytest.param(*case, marks=marks if place else ()) for place, case in enumerate(kept)]
