"""Which files are declarations."""

from __future__ import annotations

from pathlib import Path

SUFFIXES = (".yml", ".yaml")


def declarations_in(folder: Path) -> tuple[Path, ...]:
    """The declarations in a folder, sorted by name; empty if the folder does not exist."""
    found = (p for s in SUFFIXES for p in folder.glob(f"*{s}") if p.is_file())
    return tuple(sorted(found, key=lambda p: (p.stem, SUFFIXES.index(p.suffix))))


def is_preferred(file: Path, other: Path | None, name: str) -> bool:
    """Whether ``file`` takes precedence over ``other`` if both declare the pipeline ``name``. The
    file that is named like the pipeline does, or else ``other``, which was found first."""
    return other is None or (file.stem == name and other.stem != name)
