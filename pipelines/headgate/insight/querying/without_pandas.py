"""Keeps pandas out of a process that does not need it."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("left out while pyarrow looks for it", name=name)
        return None


def leave_pandas_out() -> None:
    """Import pyarrow without pandas. pyarrow imports pandas with its first value, to recognise
    pandas objects; this took half of the time of a query. Later imports of pandas work.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.scalar(True)
    finally:
        sys.meta_path.remove(finder)
