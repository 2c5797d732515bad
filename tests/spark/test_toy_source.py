"""A source of another package works at every stage of a pipeline's life: plan, a driver that is
killed, errors in the middle of batches, savepoint, restore, upgrade, ledger. No module of the
engine names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.plan import describe
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.rereading import require_source
from headgate.driver.task import RebuildRequest
from headgate.history.savepoints.deployment import deployment_of
from headgate.history.savepoints.errors import SavepointError
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from tests.oracle import SourceRecord, derive
from tests.support import drivers
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import failing
from tests.support.landing import ARRIVED
from tests.support.readings import declare_source, rules
from tests.support.tables import differences, state
from tests.support.toys import toys

pytestmark = pytest.mark.spark

GOLD = ("sliding",)
MOST = 30
PLACES = ("bronze.staged", "silver.committed")
"""The places where errors are raised; at bronze.committed, a driver is killed."""


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


class Document:
    """The document, and all the records that it ever had, for the oracle."""

    def __init__(self, path: Path) -> None:
        self.path, self.values, self.first = path, list[bytes](), 0

    def put(self, values: Sequence[bytes]) -> None:
        self.values += values
        self._write()

    def forget(self, first: int) -> None:
        self.first = first
        self._write()

    def records(self) -> list[SourceRecord]:
        return [SourceRecord(0, n, value, ARRIVED) for n, value in enumerate(self.values)]

    def _write(self) -> None:
        kept = self.values[self.first :]
        records = [{"at": ARRIVED.isoformat(), "value": value.decode()} for value in kept]
        self.path.write_text(json.dumps({"first": self.first, "records": records}))


def read_all(engine: Engine) -> None:
    engine.source.poll(final=True)
    while not engine.source.has_ingested_all():
        assert engine.source.ingest()
        engine.catch_up()


def check(engine: Engine, document: Document) -> None:
    assert differences(engine.root, derive(document.records(), rules(gold=GOLD))) == {}
    account = balance(engine.layout, engine.pipeline)
    assert (account.balanced, account.read) == (True, len(document.values))
    assert account.sources[0].files is None
    assert by_id(engine.layout, engine.pipeline).holds


def test_its_life(spark: SparkSession, tmp_path: Path) -> None:
    document, values = Document(tmp_path / "raw.json"), readings(5 * MOST, seed=7)
    document.put(values[: 2 * MOST])
    keys = f'numbers: {{path: "{document.path}", most: {MOST}}}'
    pipeline = declare_source(tmp_path, keys, gold=GOLD)
    assert f"  numbers  {document.path}, at most {MOST} in a batch" in describe(pipeline)

    root = tmp_path / "root"
    ended = drivers.run(pipeline.file, root, failpoint="bronze.committed:2:kill")
    assert ended.was_killed, ended.output
    engine = Engine(spark, pipeline, root)
    engine.catch_up()
    read_all(engine)
    check(engine, document)

    document.put(values[2 * MOST : 4 * MOST])
    for place in PLACES:
        engine.source.poll(final=False)
        with failing(place):
            engine.source.ingest()
            engine.catch_up()
        engine.start().catch_up()
    read_all(engine)
    check(engine, document)
    savepoint = engine.savepoint()
    document.put(values[4 * MOST :])
    read_all(engine)
    check(engine, document)

    for reread in (False, True):
        require_source(engine.layout, pipeline, savepoint)
        engine.restore(savepoint, reread=reread)
        engine.start()
        reached = 4 * MOST if reread else len(values)
        assert state(root, "bronze/raw")["offsets"] == {"number": reached}
        engine.catch_up()
        read_all(engine)
        check(engine, document)

    text = pipeline.text.replace("level: int", "level: bigint")
    pipeline.file.write_text(text.replace(f"most: {MOST}", f"most: {5 * MOST}"))
    changed = load(pipeline.file)
    assert deployment_of(engine.layout, changed).action == "reread"
    with pytest.raises(DefinitionChangedError):
        Engine(spark, changed, root)
    engine = Engine(spark, changed, root, anew=RebuildRequest(changed=True))
    read_all(engine)
    assert state(root, "bronze/raw")["definition"] == changed.definitions["bronze/raw"]
    check(engine, document)

    document.forget(first=4 * MOST + 1)
    with pytest.raises(SavepointError, match="the document begins at 121, and 120 is next"):
        require_source(engine.layout, pipeline, savepoint)
    assert deployment_of(engine.layout, pipeline).action == "refuse"
