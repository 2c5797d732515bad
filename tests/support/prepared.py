"""Pipelines that have already run to some point: created once, and copied for each test that
continues."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from headgate.declaration.load import load
from tests.support.engine import Engine


@dataclass(frozen=True)
class Prepared:
    """The pipeline of ``engine``, whose declaration and ``root`` share a folder. Its landing folder
    is elsewhere, and copies read it, too."""

    engine: Engine

    def copy(self, to: Path) -> Engine:
        """A new driver over a copy of the tables, and of the declaration."""
        folder = self.engine.root.parent
        declaration = self.engine.pipeline.file.relative_to(folder)
        shutil.copytree(folder, to, dirs_exist_ok=True)
        root = to / self.engine.root.name
        return Engine(self.engine.spark, load(to / declaration), root, now=self.engine.now)


def after(batches: int, engine: Engine) -> Prepared:
    """A new pipeline when the first files are in all tables, each as a batch."""
    engine.list_new()
    for end in range(1, batches + 1):
        engine.ingest(end)
        engine.catch_up()
    return Prepared(engine)
