"""Spark's scratch files and its checkpoint: local, disposable, of one run of a driver only."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS

FUSED = "fused"


def job_name(layers: Sequence[str]) -> str:
    """What a job that writes ``layers`` is called: fused, or its layer."""
    return FUSED if len(layers) == len(LAYERS) else layers[0]


def scratch_folder(layout: Layout, job: str, epoch: int) -> Path:
    return Path(layout.storage.uri(Layout.checkpoint(job, epoch)))


def remove_left_behind(layout: Layout, layers: Sequence[str], epoch: int) -> None:
    """Remove the scratch folders of killed drivers. Call it once all tables of ``layers`` are
    fenced with ``epoch``.

    Those of lower epochs that wrote no other layers can commit nothing any more; one that still
    runs fails a little sooner. A fused driver's stays where only some of its layers were fenced:
    it may be writing the others. What cannot be removed now is the next start's.
    """
    shared = scratch_folder(layout, FUSED, epoch).parent
    for folder in shared.glob("*-*"):
        job, _, number = folder.name.rpartition("-")
        wrote = LAYERS if job == FUSED else (job,)
        if number.isdecimal() and int(number) < epoch and set(wrote) <= set(layers):
            shutil.rmtree(folder, ignore_errors=True)
