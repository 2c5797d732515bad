"""Writes the file that an option names."""

from __future__ import annotations

from pathlib import Path

from headgate.errors import UsageError


def require_new(file: Path) -> None:
    """Raises UsageError if the file exists. Call it before work that takes long."""
    if file.exists():
        raise UsageError(
            f"{file} exists, and is not overwritten",
            remedy="name another file, or move this one away",
        )


def write_new(file: Path, text: str) -> None:
    """Write a file that does not exist yet. Raises UsageError."""
    require_new(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as sink:
            try:
                sink.write(text)
                sink.flush()
            except OSError:  # a full disk
                file.unlink()
                raise
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", remedy="name another file"
        ) from error
