"""The exact jars that Spark needs beside its own: pinned, fetched once, checked by SHA-256.

A stream never resolves anything while it starts: it is given :func:`cached_jars`.
"""

from __future__ import annotations

from headgate.jars.cache import cache_folder, cached_jars
from headgate.jars.ivy import fetch
from headgate.jars.lock import Jar, locked

__all__ = ["Jar", "cache_folder", "cached_jars", "fetch", "locked"]
