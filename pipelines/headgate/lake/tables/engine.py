"""The versions of the packages that write tables."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

_PACKAGES = ("headgate", "pyspark", "deltalake")


@cache
def engine() -> str:
    """The packages that can affect the contents of a table, with their versions."""
    return ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
