"""Which files are declarations, and where their relative paths start."""

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


def project_folder(declaration: Path) -> Path:
    """Where relative paths start: the nearest folder above the declaration that holds a folder
    named ``pipelines``, or else the declaration's own."""
    folder = declaration.resolve().parent
    return project_above(folder) or folder


def project_above(folder: Path) -> Path | None:
    """The nearest folder that holds a folder named ``pipelines``: this one, or one above it."""
    above = (folder, *folder.parents)
    return next((each for each in above if (each / "pipelines").is_dir()), None)


def declaration_words(file: str, *, is_own: bool) -> str:
    """Which declaration has computed rows, for a person."""
    return f"{file}, the pipeline's own declaration" if is_own else f"{file}, another declaration"
