"""An operation that somebody asked for, as bronze's commits repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """The ``number``-th operation of a pipeline: that of a ``name``, with a ``document`` that says
    more, behind bronze's batch ``n``."""

    number: int
    name: str
    n: int
    document: Mapping[str, Any]
