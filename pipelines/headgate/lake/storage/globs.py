"""Patterns of paths: those that Spark reads, and those that a person types."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\{}\[\]*?])")
_PATTERN = re.compile(r"[\[\]*?]")
_TOKEN = re.compile(r"\[!?[^\]]+\]|.", re.DOTALL)


def literal_pattern(path: str) -> str:
    """A pattern that matches only ``path``, even if a name in it looks like a pattern.

    Spark's own option for this (``__globPaths__``) reads every file of a list once more for each
    name in it that looks like a pattern.
    """
    return _SPECIAL.sub(r"\\\1", path)


def split_pattern(pattern: str) -> tuple[str, str]:
    """The folder below which all matches of a pattern are, and the rest of the pattern. The rest is
    empty if no part of the pattern has a wildcard."""
    parts = pattern.split("/")
    first = next((i for i, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
    return "/".join(parts[:first]), "/".join(parts[first:])


def compiled_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of relative paths: ``*``, ``?`` and ``[…]`` stay within a name. ``**`` stands for
    any number of folders; at the end it stands for everything below."""
    *folders, last = pattern.split("/")
    text = "".join("(?:[^/]+/)*" if part == "**" else f"{_name(part)}/" for part in folders)
    return re.compile(text + (".+" if last == "**" else _name(last)))


def _name(part: str) -> str:
    return "".join(_character(token) for token in _TOKEN.findall(part))


def _character(token: str) -> str:
    if token in ("*", "?"):
        return "[^/]*" if token == "*" else "[^/]"
    if len(token) == 1:
        return re.escape(token)
    chosen = token[1:-1].replace("\\", r"\\")
    return f"[^/{chosen[1:]}]" if chosen[0] == "!" else f"(?!/)[{chosen}]"
