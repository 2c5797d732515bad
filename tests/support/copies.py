"""Folders that are created once per process and then copied: one commit takes as long as copying a
whole lake."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from tempfile import TemporaryDirectory

_made: dict[Hashable, dict[Path, bytes]] = {}


def put(folder: Path, key: Hashable, make: Callable[[Path], object]) -> None:
    """Write into ``folder`` the files that ``make`` writes into a folder. ``make`` is called once
    for each ``key``."""
    if key not in _made:
        with TemporaryDirectory() as name:
            make(Path(name))
            found = sorted(path for path in Path(name).rglob("*") if path.is_file())
            _made[key] = {path.relative_to(name): path.read_bytes() for path in found}
    for parent in {path.parent for path in _made[key]}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    for path, content in _made[key].items():
        (folder / path).write_bytes(content)
