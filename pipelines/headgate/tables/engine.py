"""Which versions write tables."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

_PACKAGES = ("headgate", "pyspark", "deltalake")


@cache
def engine() -> str:
    """The packages whose change could change what a table holds, with their versions."""
    return ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
