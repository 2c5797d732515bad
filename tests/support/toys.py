"""The package of toy members, installed or not."""

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
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(INSTALLED))
        registry._plugged_in.cache_clear()
        yield
    registry._plugged_in.cache_clear()
