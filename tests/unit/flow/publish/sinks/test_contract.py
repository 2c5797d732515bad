"""The contract of every sink, without Spark. One of another package is declared like any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headgate.declaration.contracts.sink import SINKS, sink_of
from headgate.declaration.errors import DeclarationError
from headgate.declaration.keys.pipeline import publication_key
from headgate.declaration.plan import describe, plan
from headgate.declaration.reference.schema import json_schema
from headgate.declaration.secrets import secrets_of
from headgate.flow.publish.sinks.writers import SinkContext, writer_of
from headgate.lake.storage.files import Storage
from tests.support.sinks import CASES, SECRET, Case, declared
from tests.support.toys import INSTALLED, toys

CONTEXT = SinkContext("shop", "finals", Storage("/nowhere"))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SECRET", SECRET)
    with toys():
        yield


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def test_every_sink_has_a_case() -> None:
    assert SINKS.names() == ("kafka", "postgres", "webhook", "book", "jsonl")
    assert set(SINKS.names()) == {case.name for case in CASES}
    assert SINKS.get("writers") is None


def test_its_key_has_its_name(case: Case) -> None:
    kind = SINKS[case.name]
    assert kind.key.name == case.name
    assert kind.key.child(kind.place) is not None
    assert kind.accepts
    assert kind.check_hint


def test_its_plan_is_a_document_and_lines(case: Case) -> None:
    pipeline = declared(case.key)
    (publication,) = pipeline.publish.values()
    planned = plan(pipeline)["publish"]["finals"]
    assert json.loads(json.dumps(planned)) == planned
    assert planned[case.name] == sink_of(publication).plan(publication.sink)
    first, *more = sink_of(publication).lines(planned[case.name])
    assert "\n".join([first, "  rows     of final windows", *more]) in describe(pipeline)


def test_its_secrets_are_known_and_shown_nowhere(case: Case) -> None:
    pipeline = declared(case.key)
    assert secrets_of(pipeline) == ({SECRET} if case.has_secret else set())
    assert SECRET not in describe(pipeline) + json.dumps(plan(pipeline)) + repr(pipeline)


@pytest.mark.slow
def test_it_is_no_part_of_what_tables_mean(case: Case) -> None:
    other = next(each for each in CASES if each.name != case.name)
    assert declared(case.key).digest == declared(other.key).digest


def test_what_is_wrong_is_said_at_its_key(case: Case) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(case.wrong)
    (problem,) = refused.value.problems
    assert problem.key == f"publish.finals.{case.at}"
    assert case.problem in problem.message


def test_a_publication_has_one_sink(case: Case) -> None:
    other = next(each for each in CASES if each.name != case.name)
    for keys in (f"{case.key}, {other.key}", "when: final"):
        with pytest.raises(
            DeclarationError, match="exactly one of the keys kafka, postgres, webhook, book, jsonl"
        ):
            declared(keys)


def test_editors_know_its_keys(case: Case) -> None:
    publish = json_schema()["properties"]["publish"]["additionalProperties"]
    assert case.name in publish["properties"]


def test_an_error_of_others_is_not_its_own(case: Case) -> None:
    (publication,) = declared(case.key).publish.values()
    assert writer_of(publication, CONTEXT).failure(ValueError("of something else")) is None


@pytest.mark.slow
def test_declarations_are_read_without_spark() -> None:
    """`headgate plan` reads them in this way and starts no JVM."""
    keys = [case.key for case in CASES]
    path = [str(INSTALLED), *(entry for entry in sys.path if entry)]
    code = (
        f"import sys; sys.path[:0] = {path!r}\n"
        "from tests.support.sinks import declared\n"
        f"for key in {keys!r}: declared(key)\n"
        "assert 'pyspark' not in sys.modules, 'pyspark'"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"SECRET": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_with_one_sink_alone_its_key_is_required() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(SINKS), "names", lambda self: ("kafka",))
        kafka = publication_key().child("kafka")
    assert kafka is not None
    assert kafka.required
