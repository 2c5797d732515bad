"""The declaration of readings for two sources in folders. The oracle derives the tables of each
source on its own, with its names of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.declaration.model import Pipeline
from headgate.driver.task import NO_REBUILD, RebuildRequest
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.oracle import Rules, SourceRecord, Tables
from tests.oracle.rules import Happening
from tests.support.engine import Engine
from tests.support.landing import Landing
from tests.support.readings import files_key, rules
from tests.support.several_readings import (
    declare_several,
    derive_source,
    happenings,
    tables_of,
)
from tests.support.tables import differences

SOURCES = ("raw", "other")
GOLD = ("sliding", "bands")


def declare_landings(folder: Path, landings: Mapping[str, Landing]) -> Pipeline:
    """The declaration with one source for each landing folder."""
    keys = {
        name: files_key(landing.folder, max_files_per_batch=2) for name, landing in landings.items()
    }
    return declare_several(folder, keys, gold=GOLD)


@dataclass(frozen=True)
class TwoReadings:
    """The pipeline of ``engine``, and the landing folder of each source."""

    engine: Engine
    landings: Mapping[str, Landing]

    def again(self, pipeline: Pipeline | None = None, anew: RebuildRequest = NO_REBUILD) -> Engine:
        """A new driver, of this or another declaration."""
        engine = self.engine
        declared = pipeline or engine.pipeline
        return Engine(engine.spark, declared, engine.root, now=engine.clock(), anew=anew)

    def records(self, source: str, files: int | None = None) -> list[SourceRecord]:
        """The records of the first files of a source; None: of all."""
        found = self.landings[source].records()
        return [one for one in found if files is None or one.offset >> 36 < files]

    def upto(self, source: str, files: int) -> Mapping[int, int]:
        """The position of a source after its first files."""
        return {0: max(one.offset for one in self.records(source, files))}

    def expected(
        self,
        source: str,
        meant: Iterable[Happening | None] = (),
        *,
        used: Rules | None = None,
        more: Iterable[SourceRecord] = (),
        files: int | None = None,
    ) -> Tables:
        """The tables of a source (``derive_source``)."""
        records = [*self.records(source, files), *more]
        found = happenings(self.engine.decisions(), meant)
        return derive_source(records, used or rules(gold=GOLD), found)

    def check(self, source: str, expected: Tables) -> None:
        assert differences(tables_of(self.engine.root, source), expected) == {}

    def check_ledger(self, engine: Engine | None = None) -> None:
        engine = engine or self.engine
        assert balance(engine.layout, engine.pipeline).differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()
