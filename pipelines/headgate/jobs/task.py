"""What a driver is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.declaration.model import Pipeline
from headgate.jobs.rebuild_request import NOTHING, RebuildRequest
from headgate.storage.ownership import LAYERS


@dataclass(frozen=True)
class Task:
    """One task of a driver. ``layers`` are those it writes: all of them is *fused*;
    ``once`` ends when everything the source has now is absorbed; ``accept_gap`` passes over what a
    topic has lost; ``anew`` says which tables are rebuilt; ``only_open`` ends when the tables are
    open, and with ``once`` when they have absorbed what bronze has."""

    pipeline: Pipeline
    root: str
    layers: Sequence[str] = LAYERS
    once: bool = False
    drain: bool = False
    take_over: bool = False
    accept_gap: bool = False
    anew: RebuildRequest = NOTHING
    only_open: bool = False
    cores: int = 2
    jars: Sequence[Path] = ()
