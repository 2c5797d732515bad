"""The one of several valid names that is written, or that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from headgate.declaration.errors import Invalid


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The closest of ``valid``, or None when nothing is close. Case is ignored."""
    folded = {name.lower(): name for name in valid}
    matches = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The closest of ``valid``, as the end of a message; empty if nothing is close."""
    near = nearest(word, valid)
    return f' (did you mean "{near}"?)' if near else ""


def chosen(text: str, choices: Collection[str]) -> str:
    """``text``, if it is one of ``choices``. Otherwise raises Invalid with the closest one."""
    if text not in choices:
        raise Invalid(f"must be one of {', '.join(choices)}, not {text!r}", nearest(text, choices))
    return text
