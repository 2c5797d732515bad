"""Paths as Spark takes them: a name that looks like a pattern is still only a name."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\{}\[\]*?])")


def literal(path: str) -> str:
    """``path`` as a pattern that matches it alone.

    Spark's own switch for this (``__globPaths__``) reads every file of a list once more for each
    name in it that looks like a pattern.
    """
    return _SPECIAL.sub(r"\\\1", path)
