"""The valid name that a wrong one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The closest of ``valid``, or None when nothing is close. Case is ignored."""
    folded = {name.lower(): name for name in valid}
    matches = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None
