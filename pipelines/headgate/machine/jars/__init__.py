"""The exact jars that Spark needs beside its own, and those of the development broker: pinned,
fetched once, checked by SHA-256.

A stream never resolves dependencies when it starts: it uses :func:`cached_jars`.
"""

from __future__ import annotations

from headgate.machine.jars.cache import cache_folder, cached_jars
from headgate.machine.jars.ivy import fetch
from headgate.machine.jars.lock import Jar, LockSet, locked

__all__ = ["Jar", "LockSet", "cache_folder", "cached_jars", "fetch", "locked"]
