"""How much of a long proof is run: a part of it as a rule, all of it where rounds are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

ROUNDS = int(os.environ.get("HEADGATE_CHAOS_ROUNDS", "0"))
"""How often a thing is done at random; never, as a rule."""
IN_FULL = ROUNDS > 0

in_full = pytest.mark.skipif(not IN_FULL, reason="a long proof: `make chaos` or `make nightly`")

Case = TypeVar("Case", bound=tuple[object, ...])


def some(cases: Sequence[Case], one_in: int, start: int = 0) -> list[object]:
    """One of so many cases, or all of them in full; every one but the first of them is ``long``.

    Of a product, take one in a number that does not divide it: then each value comes up.
    """
    kept = cases if IN_FULL else cases[start::one_in]
    marks = pytest.mark.long
    return [pytest.param(*case, marks=marks if place else ()) for place, case in enumerate(kept)]
