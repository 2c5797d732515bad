"""The contract of every operator, without Spark. One of another package is declared like any."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

import headgate
from headgate.declaration.contracts.operator import (
    OPERATORS,
    begin_of,
    bounds_of,
    columns_of,
    identity_columns,
    key_of,
    late_bounds_of,
    late_columns,
    late_identity,
    operator_of,
)
from headgate.declaration.errors import DeclarationError
from headgate.declaration.keys.tables import gold_key
from headgate.declaration.names import (
    SILVER_COLUMNS,
    SILVER_IDENTITY,
    STATUS_COLUMNS,
    WHY_LATE,
    check_name,
)
from headgate.declaration.plan import describe, plan
from headgate.declaration.reference.schema import json_schema
from headgate.declaration.types import STRING, TIMESTAMP, Struct
from tests.support.contract.cases import CASES as TABLES
from tests.support.operators import CASES, Case, declared, text_of
from tests.support.toys import INSTALLED, toys

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def test_every_operator_has_a_case() -> None:
    kinds = [OPERATORS[name] for name in OPERATORS.names()]
    assert {key.name for kind in kinds for key in kind.keys} == {case.name for case in CASES}
    folds = {key.name for kind in kinds if not kind.appends for key in kind.keys}
    assert folds == {case.kind for case in TABLES}, "tests/support/contract/cases.py"


def test_no_two_keys_have_one_name() -> None:
    gold = gold_key()
    window = gold.child("window")
    assert window is not None
    for section in (gold, window):
        names = [key.name for key in section.children]
        assert len(names) == len(set(names))


def test_its_plan_is_a_document_and_a_line(case: Case) -> None:
    pipeline = case.declared()
    document = plan(pipeline)
    assert json.loads(json.dumps(document)) == document
    planned = operator_of(pipeline.gold["results"]).plan(pipeline.gold["results"].operator)
    assert planned
    assert planned.items() <= document["gold"]["results"].items()
    label, line = operator_of(case.table).summary(case.table.operator)
    assert 0 < len(label) <= 8
    assert f"  {label:<8} {line}, " in describe(pipeline)


def test_its_digest_says_what_it_means(case: Case) -> None:
    same, other = case.declared(), case.declared(case.other)
    assert case.declared().definitions == same.definitions
    changed = {p for p in same.definitions if same.definitions[p] != other.definitions[p]}
    assert changed == {"gold/results", "late/results"}


def test_its_columns_are_those_of_results(case: Case) -> None:
    gold, kind = case.table, operator_of(case.table)
    columns = columns_of(gold)
    for name in columns:
        check_name(name)
    assert not columns.keys() & {*STATUS_COLUMNS, *SILVER_COLUMNS, *WHY_LATE}
    assert [columns[name] for name in bounds_of(gold)] == [TIMESTAMP] * len(bounds_of(gold))
    assert bounds_of(gold) in ((), tuple(columns)[: 1 if kind.appends else 2])
    assert begin_of(gold) == bounds_of(gold)[:1]
    identity = identity_columns(gold)
    assert bool(identity) == bool(columns)
    # A moment does not distinguish two results.
    own = tuple(name for name in columns if not kind.appends or name not in bounds_of(gold))
    assert identity == own[: len(identity)]
    names = {*columns, *(each.name for each in gold.by)}
    assert {*identity} <= {*key_of(gold)} <= names
    planned = plan(case.declared())["gold"]["results"]
    assert tuple(planned["schema"])[: len(columns)] == tuple(columns)


def test_late_rows_say_what_they_are_late_for(case: Case) -> None:
    gold, pipeline = case.table, case.declared()
    record = pipeline.sources["orders"].record
    silver = {name: table.row(record) for name, table in pipeline.silver.items()}
    late = late_columns(gold, silver)
    assert {**SILVER_COLUMNS, **WHY_LATE}.items() <= late.items()
    assert {*late_identity(gold)} <= late.keys()
    assert {*SILVER_IDENTITY} < {*late_identity(gold)} or not columns_of(gold)
    assert {*late_bounds_of(gold)} <= late.keys()
    if operator_of(gold).appends:
        rows = {name: Struct.of(pipeline.silver[name].types) for name in gold.inputs}
        assert late == {"input": STRING, **SILVER_COLUMNS, **WHY_LATE, **rows}
    else:
        assert late == {**silver["clean"], **columns_of(gold), **WHY_LATE}
    printed = {name: str(type_) for name, type_ in late.items()}
    assert plan(pipeline)["gold"]["results"]["late"]["schema"] == printed


def test_its_columns_are_nobody_elses(case: Case) -> None:
    for name in columns_of(case.table):
        with pytest.raises(DeclarationError, match=f"'{name}' is a column of every gold table"):
            case.declared(column=name)


def test_finality_follows_the_watermark(case: Case) -> None:
    gold = case.table
    final_up_to = operator_of(gold).final_up_to
    times = [NOON + timedelta(minutes=n) for n in range(3)]
    ends = [final_up_to(gold.operator, time, gold.allowed_lateness) for time in times]
    known = [end for end in ends if end is not None]
    assert len(known) in (0, 3)
    assert known == sorted(known)
    assert all(end <= time for end, time in zip(known, times, strict=False))


def test_what_is_wrong_is_said_at_its_key(case: Case) -> None:
    with pytest.raises(DeclarationError) as refused:
        case.declared(case.wrong)
    (problem,) = refused.value.problems
    assert problem.key == f"gold.results.{case.at}"
    assert case.problem in problem.message


def test_a_table_has_one_operator(case: Case) -> None:
    second = next(c for c in CASES if c.name != case.name and c.keys[:6] != case.keys[:6])
    both = f"{case.keys}\n    {second.keys.partition(chr(10))[0]}"
    keys = "window, as_of, join, over, running, slots, union"
    with pytest.raises(DeclarationError, match=f"needs exactly one of the keys {keys}"):
        case.declared(both)


def test_editors_know_its_keys(case: Case) -> None:
    gold = json_schema()["properties"]["gold"]["additionalProperties"]
    windows = gold["properties"]["window"]["properties"]
    assert case.name in {*windows, *gold["properties"]}
    assert "allowed_lateness" not in gold.get("required", ())
    validator = Draft202012Validator(json_schema())
    text = text_of(case.keys, rest=case.rest)
    read = YAML(typ="safe", pure=True).load
    validator.validate(read(text))
    assert not validator.is_valid(read(text.replace(f"{case.name}:", "sideways:")))


def test_a_silver_column_and_a_late_column_cannot_have_one_name() -> None:
    keys = next(case.keys for case in CASES if case.name == "slots")
    declared(keys)
    with pytest.raises(DeclarationError, match="has a column 'slot', which late side tables have"):
        declared(keys, silver="columns: {slot: id}")


@pytest.mark.slow
def test_declarations_are_read_without_spark() -> None:
    """`headgate plan` reads them in this way and starts no JVM."""
    code = (
        "import sys; from tests.support.operators import CASES\n"
        "for case in CASES: case.declared()\n"
        "assert 'pyspark' not in sys.modules, 'pyspark'"
    )
    path = [str(INSTALLED), *(entry for entry in sys.path if entry)]
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_modules_beside_the_members_are_none() -> None:
    ours = ("as_of", "calendar", "count", "join", "over", "running", "session", "windows")
    assert OPERATORS.names() == (*ours, "slots", "union")
    assert OPERATORS.get("fold_operator") is None


def test_no_other_module_knows_what_a_window_looks_like() -> None:
    """Exceptions: the reserved names of columns, and the demo, which reads its own pipeline."""
    package = Path(headgate.__file__).parent
    knowing = {
        str(file.relative_to(package).parent)
        for file in package.rglob("*.py")
        if "window_start" in file.read_text(encoding="utf-8")
    }
    operators = {f"flow/gold/operators/{name}" for name in ("calendar", "session", "windows")}
    assert knowing == {"cli/demo", "declaration", *operators}
