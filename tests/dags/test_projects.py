"""Which streams a folder of declarations has, and their DAGs, whatever names its author chooses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from airflow.sdk import DAG

from headgate.airflow import build_dags, gold_tables, require_declarations
from headgate.airflow.operators.backfill import BackfillInterval
from headgate.airflow.operators.final_periods import EmitFinalPeriods
from headgate.airflow.projects import declared_in
from tests.dags.test_building import add, backfill, made
from tests.support.joins import DECLARATION as JOINS
from tests.support.joins import FOLD, ROLLUP
from tests.unit.insight.ledger.conftest import DECLARATION


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made(tmp_path)


TABLE = DECLARATION[DECLARATION.index("  per_minute:") :]
APPROVED = backfill("every: 1 day, mode: rebuild, publish: after_approval")
FIXED = ("wait", "compute", "publish", "approve", "replay")


def with_tables(project: Path, *names: str, keys: str) -> dict[str, DAG]:
    """The DAGs of a pipeline with gold tables of these names."""
    tables = "".join(TABLE.replace("per_minute", name) for name in names)
    file = add(project, "shop") / "pipelines/shop.yml"
    file.write_text(file.read_text().replace(TABLE, tables) + keys)
    require_declarations(project / "pipelines")
    return build_dags(project / "pipelines")


@pytest.mark.parametrize("name", [*FIXED, "sales"])
def test_a_table_may_be_named_like_a_task(project: Path, name: str) -> None:
    dags = with_tables(project, name, keys=APPROVED)
    gold, past = dags["shop__gold"], dags["shop__backfill"]

    assert set(gold.task_ids) == {name, f"{name}-days", "wait-" if name == "wait" else "wait"}
    assert set(past.task_ids) == {"compute", "approve", "publish", f"{name}_is_final"}
    emits = gold.get_task(name)
    assert isinstance(emits, EmitFinalPeriods)
    assert {emits.waiting} == emits.upstream_task_ids
    for task in past.tasks:
        if isinstance(task, BackfillInterval) and task.then == "publish":
            assert task.asks == "compute"
            assert task.upstream_task_ids == {"approve"}
            assert past.get_task("approve").upstream_task_ids == {"compute"}
    assert "the log of the task `compute`" in (past.doc_md or "")


def test_tables_may_be_named_like_what_waits_for_them(project: Path) -> None:
    keys = backfill("every: 1 day, mode: late")
    names = ("a", "a_is_final", "replay")
    dag = with_tables(project, *names, keys=keys)["shop__backfill"]
    waiting = {f"{name}_is_final" for name in names}
    assert set(dag.task_ids) == {*waiting, "replay", "compute"}


def test_a_backfill_waits_for_the_tables_that_it_can_compute(project: Path) -> None:
    """Joins and what reads them are left out. They have assets as all gold tables."""
    text = JOINS + ROLLUP + FOLD + backfill("every: 1 day, mode: late")
    (project / "pipelines/shop.yml").write_text(text)
    require_declarations(project / "pipelines")
    (declared,) = declared_in(project / "pipelines", None)
    folds = ("per_hour",)
    assert (declared.gold, declared.folds) == (("bought", "paid_per_day", *folds), folds)
    dags = build_dags(project / "pipelines")
    assert {"bought", "bought-days"} <= {*dags["shop__gold"].task_ids}
    assert {*dags["shop__backfill"].task_ids} == {"per_hour_is_final", "replay", "compute"}


@pytest.mark.parametrize(
    ("every", "is_there"),
    [
        ("0 seconds", False),
        ("1 ms", False),
        ("59 minutes", False),
        ("1 hour", True),
        ("366 days", True),
        ("367 days", False),
        ("3000000 days", False),
    ],
)
def test_an_interval_has_bounds(project: Path, every: str, is_there: bool) -> None:
    """As in the declaration, where the mistake is reported."""
    add(project, "shop", keys=backfill(f"every: {every}"))
    assert ("shop__backfill" in build_dags(project / "pipelines")) == is_there
    if not is_there:
        with pytest.raises(ValueError, match="every"):
            require_declarations(project / "pipelines")


@pytest.mark.parametrize("text", ["pipeline: [\n", "pipelin: shop\n", "", "- a list\n", None])
def test_a_stream_that_has_run_keeps_its_supervisor_whatever_its_file_says(
    project: Path, text: str | None
) -> None:
    file = add(project, "shop") / "pipelines/shop.yml"
    if text is None:
        file.write_bytes(b"pipeline: \xff\n")
    else:
        file.write_text(text)
    assert build_dags(project / "pipelines") == {}, "it may be a file of something else"
    (project / "lake/shop").mkdir(parents=True)
    shared = {"headgate__health", "headgate__maintenance"}
    dags = build_dags(project / "pipelines")
    assert set(dags) == {"shop__stream", "shop__control", *shared}
    with pytest.raises(ValueError, match=r"shop\.yml"):
        require_declarations(project / "pipelines")


def roots(folder: Path, root: str | Path | None) -> set[str]:
    return {each.stream.root for each in declared_in(folder, root)}


def test_a_relative_root_is_beside_the_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker, triggerer and API server have other working folders."""
    folder = add(project, "shop") / "pipelines"
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", "/home/me")
    assert roots(folder, None) == roots(folder, "lake") == {f"{project}/lake"}
    assert roots(folder, Path("data/lake")) == {f"{project}/data/lake"}
    for root in ("/data/lake", "s3://bucket/lake"):
        assert roots(folder, root) == {root}
    assert roots(folder, "~/lake") == {"/home/me/lake"}
    # As the command line finds them from the project's folder, also for declarations further below.
    shutil.copytree(folder, folder / "examples")
    assert roots(folder / "examples", None) == {f"{project}/lake"}
    monkeypatch.setenv("HEADGATE_ROOT", "other")
    assert roots(folder, None) == {f"{project}/other"}
    (table,) = gold_tables(folder)
    assert table.uri == f"{project}/other/shop/gold/per_minute"
