"""A project with one pipeline over landing files, and a suite of rules that a test changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.task import NO_REBUILD, RebuildRequest
from tests.support.engine import Engine
from tests.support.landing import Landing, lines
from tests.support.tables import Row, read

SOURCE = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: "0 s"}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, site: string, level: int, at: timestamp}}
"""


class SuiteProject:
    """``tables`` is the rest of the declaration after ``SOURCE``, ``suite`` the name of its
    suite."""

    def __init__(self, folder: Path, spark: SparkSession, tables: str, suite: str) -> None:
        self.root, self._spark = folder / "root", spark
        self._landing = Landing(folder / "landing")
        self.declaration = folder / "readings.yml"
        self._suite = folder / "expectations" / f"{suite}.yml"
        self._suite.parent.mkdir()
        self.declaration.write_text(SOURCE.format(landing=self._landing.folder) + tables)
        self._files = 0

    def copy(self, folder: Path) -> Self:
        """The same tables, declaration, rules and landing files in another folder."""
        before = self.declaration.parent
        shutil.copytree(before, folder, dirs_exist_ok=True)
        made = copy(self)
        for name in ("root", "declaration", "_suite"):
            setattr(made, name, folder / getattr(self, name).relative_to(before))
        made._landing = Landing(folder / "landing")
        text = self.declaration.read_text()
        assert str(before) in text
        made.declaration.write_text(text.replace(str(before), str(folder)))
        return made

    def write_rules(self, text: str) -> None:
        self._suite.write_text(text)

    def engine(self, anew: RebuildRequest = NO_REBUILD) -> Engine:
        """A new driver, with the current declaration and rules."""
        return Engine(self._spark, load(self.declaration), self.root, anew=anew)

    def land(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write one more landing file."""
        self._files += 1
        values = [json.dumps(each).encode() for each in events]
        self._landing.write(f"{self._files:05d}.json", lines(values))

    def read(self, table: str) -> list[Row]:
        return read(self.root, table)
