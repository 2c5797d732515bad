"""The task of a driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.declaration.model import Pipeline
from headgate.lake.control.ownership import LAYERS


@dataclass(frozen=True)
class RebuildRequest:
    """``tables`` are paths of tables to rebuild. ``changed`` adds all tables that were made from
    another declaration."""

    tables: Sequence[str] = ()
    changed: bool = False


NO_REBUILD = RebuildRequest()


FUSED = "fused"


@dataclass(frozen=True)
class Task:
    """``layers`` are the layers that the driver writes; a *fused* driver writes all. ``once`` ends
    the driver when everything that the source has now is processed. ``accept_gap`` continues after
    records that a topic has lost. ``rebuild`` names the tables to rebuild. ``only_open`` ends the
    driver when the tables are open, and with ``once`` when they have processed all of bronze; with
    ``loads``, when the open loads of history are done. If a bronze that was read again is
    published, the open loads are carried out without ``loads``, too."""

    pipeline: Pipeline
    root: str
    layers: Sequence[str] = LAYERS
    once: bool = False
    drain: bool = False
    take_over: bool = False
    accept_gap: bool = False
    rebuild: RebuildRequest = NO_REBUILD
    only_open: bool = False
    loads: bool = False
    cores: int = 2
    jars: Sequence[Path] = ()

    @property
    def job(self) -> str:
        """The name of the job: ``fused``, or its layer."""
        return FUSED if len(self.layers) == len(LAYERS) else self.layers[0]
