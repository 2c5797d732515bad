"""Which files are declarations."""

from __future__ import annotations

from pathlib import Path

SUFFIXES = (".yml", ".yaml")


def declarations_in(folder: Path) -> tuple[Path, ...]:
    """Every declaration of a folder, by name; none where there is no such folder."""
    found = (p for s in SUFFIXES for p in folder.glob(f"*{s}") if p.is_file())
    return tuple(sorted(found, key=lambda p: (p.stem, SUFFIXES.index(p.suffix))))


def is_preferred(file: Path, other: Path | None, name: str) -> bool:
    """Whether ``file`` counts and ``other`` does not, if both declare the pipeline ``name``: the
    file that has that name does, else ``other``, which came first."""
    return other is None or (file.stem == name and other.stem != name)
