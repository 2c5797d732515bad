"""The contract of every kind of source, without Spark. A kind of another package is declared and
read like any."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from headgate.declaration.contracts.source import CONNECTORS
from headgate.declaration.errors import DeclarationError
from headgate.declaration.graph import graph_of
from headgate.declaration.keys.source import source_key
from headgate.declaration.kinds import KINDS
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe, plan
from headgate.declaration.reference.schema import json_schema
from headgate.declaration.secrets import secrets_of
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.errors import SourceError
from tests.support.declared import source_of
from tests.support.sources import CASES, SECRET, Bronze, Case, Log, declared
from tests.support.toys import INSTALLED, toys


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


@pytest.fixture(params=CASES, ids=lambda case: case.kind)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def pipeline(case: Case, tmp_path: Path) -> Pipeline:
    return declared(case.keys, tmp_path)


@pytest.fixture
def log(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    return case.log(tmp_path, monkeypatch)


def test_every_kind_has_a_case() -> None:
    assert CONNECTORS.names() == tuple(case.kind for case in CASES)


def test_its_keys_are_one_section_of_a_source(case: Case) -> None:
    kind = CONNECTORS[case.kind]
    assert (kind.key.name, kind.key.kind) == (case.kind, "section")
    assert kind.key.doc
    names = [key.name for key in source_key().children]
    assert len(names) == len(set(names))
    editors = json_schema()["properties"]["sources"]["additionalProperties"]
    assert set(editors["properties"][case.kind]["properties"]) == {
        key.name for key in kind.key.children
    }


def test_what_it_reads_is_a_frozen_value(case: Case, pipeline: Pipeline) -> None:
    source = source_of(pipeline)
    assert source.kind == case.kind
    assert is_dataclass(source.reads)
    assert source == source_of(declared(case.keys, pipeline.file.parent))
    assert CONNECTORS[case.kind].not_meant <= {field.name for field in fields(source.reads)}
    hash(CONNECTORS[case.kind].format(source.reads))


def test_its_plan_is_a_document_and_lines(case: Case, pipeline: Pipeline) -> None:
    document = plan(pipeline)
    assert json.loads(json.dumps(document)) == document
    kind = CONNECTORS[case.kind]
    assert document["sources"]["orders"][case.kind] == kind.plan(source_of(pipeline).reads)
    lines = kind.lines(json.loads(json.dumps(document))["sources"]["orders"][case.kind])
    assert lines[0].startswith(f"  {case.kind:<8} ")
    assert "\n".join(lines) in describe(pipeline)


def test_its_digest_says_what_it_means(case: Case, pipeline: Pipeline, tmp_path: Path) -> None:
    assert declared(case.same, tmp_path).definitions == pipeline.definitions
    if case.other is not None:
        other = declared(case.other, tmp_path).definitions
        assert all(other[path] != pipeline.definitions[path] for path in other)


def test_what_is_wrong_is_said_at_its_key(case: Case, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(case.wrong, tmp_path)
    (problem,) = refused.value.problems
    assert problem.key == f"sources.orders.{case.at}"
    assert case.problem in problem.message


def test_a_source_is_of_one_kind(case: Case, tmp_path: Path) -> None:
    other = next(each for each in CASES if each.kind != case.kind)
    with pytest.raises(DeclarationError, match="exactly one of the keys files, kafka, numbers"):
        declared(f"{case.keys}\n    {other.keys}", tmp_path)


def test_its_secrets_are_known_and_in_no_plan(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    pipeline = declared(case.secret or case.keys, tmp_path)
    assert secrets_of(pipeline) == ({SECRET} if case.secret else frozenset())
    assert SECRET not in json.dumps(plan(pipeline)) + describe(pipeline)


def test_its_tables_are_in_the_graph(case: Case, pipeline: Pipeline, log: Log) -> None:
    kind = CONNECTORS[case.kind]
    assert all(kept in KINDS and not kept.is_built for kept in kind.keeps)
    paths = [shape.table.name for shape in kind.tables(log.place(pipeline))]
    assert paths == [kept.path("orders") for kept in kind.keeps]
    assert set(paths) <= {node.path for node in graph_of(pipeline).written_by(["bronze"])}


@pytest.mark.slow
def test_declarations_are_read_without_spark(case: Case, tmp_path: Path) -> None:
    """`headgate plan` reads them in this way and starts no JVM."""
    code = (
        "import sys; from pathlib import Path\n"
        "from headgate.declaration.load import load\n"
        "from headgate.declaration.plan import describe\n"
        "from headgate.declaration.graph import graph_of\n"
        "from headgate.declaration.contracts.source import connector_of\n"
        "pipeline = load(Path(sys.argv[1])); describe(pipeline); graph_of(pipeline)\n"
        "source = pipeline.sources['orders']\n"
        "connector_of(source).plan(source.reads)\n"
        "assert not {'pyspark', 'deltalake', 'py4j'} & sys.modules.keys()"
    )
    file = tmp_path / "shop.yml"
    file.write_text(declared(case.keys, tmp_path).text)
    path = [str(INSTALLED), *(entry for entry in sys.path if entry)]
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def drain(source: SourceLoop) -> int:
    """Ingest all waiting input. Returns the number of batches."""
    batches = 0
    while source.pending():
        assert source.ingest()
        batches += 1
    return batches


def test_an_empty_source_gives_nothing(pipeline: Pipeline, log: Log) -> None:
    log.put(0)
    bronze = Bronze()
    source = log.open(pipeline, bronze)
    begun = bronze.state
    source.poll(final=True)
    assert (source.pending(), source.backlog().count, source.outage) == (0, 0, None)
    assert source.has_ingested_all()
    assert not source.ingest()
    assert bronze.state == begun
    assert bronze.read == []


def test_each_record_is_ingested_once_and_in_order(
    case: Case, pipeline: Pipeline, log: Log
) -> None:
    bronze = Bronze()
    log.put(0)
    source = log.open(pipeline, bronze)
    for records in (7, 1, 0, 5):
        log.put(records)
        source.poll(final=False)
        assert source.backlog().count == records
        assert drain(source) >= -(-records // case.most)
    assert sorted(bronze.read) == sorted(log.written)
    for partition in {partition for partition, _ in log.written}:
        own = [record for record in bronze.read if record[0] == partition]
        assert own == sorted(own)
    assert source.backlog().count == 0
    source.close()


def test_no_batch_is_larger_than_declared(case: Case, pipeline: Pipeline, log: Log) -> None:
    bronze = Bronze()
    log.put(0)
    source = log.open(pipeline, bronze)
    log.put(10)
    source.poll(final=False)
    while source.pending():
        before = len(bronze.read)
        assert source.ingest()
        assert 0 < len(bronze.read) - before <= case.most


def test_a_new_one_continues_where_bronze_ended(pipeline: Pipeline, log: Log) -> None:
    bronze = Bronze()
    log.put(0)
    for _ in range(4):
        source = log.open(pipeline, bronze)
        log.put(5)
        source.poll(final=False)
        assert source.ingest()
        source.close()
    source = log.open(pipeline, bronze)
    source.poll(final=False)
    drain(source)
    assert sorted(bronze.read) == sorted(log.written)


def test_what_was_not_committed_is_ingested_again(pipeline: Pipeline, log: Log) -> None:
    bronze = Bronze()
    log.put(0)
    source = log.open(pipeline, bronze)
    log.put(4)
    source.poll(final=False)

    def refuse() -> None:
        raise InterruptedError

    bronze.refuse = refuse
    with pytest.raises(InterruptedError):
        source.ingest()
    assert source.backlog().count == 4
    bronze.refuse = lambda: None
    drain(source)
    assert sorted(bronze.read) == sorted(log.written)


def test_a_final_poll_bounds_what_is_ingested(pipeline: Pipeline, log: Log) -> None:
    bronze = Bronze()
    log.put(0)
    source = log.open(pipeline, bronze)
    log.put(5)
    source.poll(final=True)
    there = list(log.written)
    assert not source.has_ingested_all()
    log.put(5)
    while not source.has_ingested_all():
        assert source.ingest()
    assert sorted(bronze.read) == sorted(there)
    assert not source.ingest()


def test_what_changes_while_it_is_read_is_not_committed(pipeline: Pipeline, log: Log) -> None:
    bronze = Bronze()
    log.put(0)
    source = log.open(pipeline, bronze)
    log.put(3)
    source.poll(final=False)
    begun = bronze.state
    log.while_reading = log.rewrite
    with pytest.raises(SourceError):
        source.ingest()
    assert bronze.state == begun


def test_it_says_what_can_no_longer_be_read(case: Case, pipeline: Pipeline, log: Log) -> None:
    bronze = Bronze()
    log.put(0)
    source, kind, place = log.open(pipeline, bronze), CONNECTORS[case.kind], log.place(pipeline)
    begun = bronze.payload
    log.put(6)
    source.poll(final=False)
    drain(source)
    after = bronze.payload
    assert kind.gone(place, begun.offsets, begun.topics, log.session) is None
    kind.require_unchanged(place, after.offsets)
    log.forget(2)
    said = kind.gone(place, begun.offsets, begun.topics, log.session)
    assert said
    assert kind.gone(place, after.offsets, after.topics, log.session) is None
    assert kind.missing(place)
