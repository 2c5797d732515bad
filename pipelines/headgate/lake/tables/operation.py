"""A requested operation, as every commit of bronze repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """The ``number``-th operation of a pipeline. ``name`` is its kind, ``document`` has its
    parameters. It takes place after bronze's batch id ``n``, at the ``watermark`` of that batch
    (microseconds since 1970 UTC; None if there was none). The watermark is repeated here because a
    log does not keep the commit of the batch for ever."""

    number: int
    name: str
    n: int
    document: Mapping[str, Any]
    watermark: int | None = None
