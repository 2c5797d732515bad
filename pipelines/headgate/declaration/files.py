"""Which files are declarations."""

from __future__ import annotations

from pathlib import Path

SUFFIXES = (".yml", ".yaml")


def declarations_in(folder: Path) -> tuple[Path, ...]:
    """Every declaration of a folder, by name; none where there is no such folder."""
    return tuple(sorted(p for s in SUFFIXES for p in folder.glob(f"*{s}") if p.is_file()))
