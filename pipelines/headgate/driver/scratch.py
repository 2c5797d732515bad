"""Spark's scratch files and its checkpoint: local, disposable, and used by one run of a driver."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout

FUSED = "fused"


def job_name(layers: Sequence[str]) -> str:
    """The name of a job that writes ``layers``: ``fused``, or its layer."""
    return FUSED if len(layers) == len(LAYERS) else layers[0]


def scratch_folder(layout: Layout, job: str, epoch: int) -> Path:
    return Path(layout.storage.uri(Layout.checkpoint(job, epoch)))


def remove_orphaned(layout: Layout, layers: Sequence[str], epoch: int) -> None:
    """Remove the scratch folders of killed drivers. Call it after all tables of ``layers`` are
    fenced with ``epoch``.

    Drivers of lower epochs that wrote no other layers can no longer commit; one that still runs
    fails a little earlier. The folder of a fused driver stays if only some of its layers are
    fenced: it may still write the others. The next start removes what cannot be removed now.
    """
    shared = scratch_folder(layout, FUSED, epoch).parent
    for folder in shared.glob("*-*"):
        job, _, number = folder.name.rpartition("-")
        wrote = LAYERS if job == FUSED else (job,)
        if number.isdecimal() and int(number) < epoch and set(wrote) <= set(layers):
            shutil.rmtree(folder, ignore_errors=True)
