"""Installs the package of toys, or another package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate import registry

INSTALLED = Path(__file__).resolve().parents[1] / "toys/installed"


@contextmanager
def toys() -> Iterator[None]:
    """Install the toys in this process."""
    with _installed(INSTALLED):
        yield


@contextmanager
def plugged_in(
    folder: Path, name: str, group: str, *entries: str, code: str = ""
) -> Iterator[None]:
    """Install a package into ``folder``, as pip does: a module ``name`` if it has ``code``, and
    entry points of ``group``."""
    about = folder / f"{name}-1.dist-info"
    about.mkdir(parents=True)
    project = name.replace("_", "-")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1\n")
    lines = (f"[{group}]", *entries, "")
    (about / "entry_points.txt").write_text("\n".join(lines))
    if code:
        (folder / f"{name}.py").write_text(code)
    with _installed(folder):
        yield


@contextmanager
def _installed(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        registry._plugged_in.cache_clear()
        yield
    registry._plugged_in.cache_clear()
