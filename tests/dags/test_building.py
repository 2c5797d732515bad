"""DAGs from declarations, as Airflow reads them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.airflow import build_dags, require_declarations
from headgate.airflow.projects import declared_in
from headgate.machine.process_tree.members import MARK
from headgate.setup.scaffold import create_project
from tests.unit.insight.ledger.conftest import DECLARATION

SHARED = {"headgate__health", "headgate__maintenance"}
REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = REPOSITORY / "pipelines/headgate/setup/templates/shop/dags"
READ = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk
HEAVY = {"pyspark", "great_expectations", "deltalake", "duckdb", "pyarrow", "sqlglot", "ruamel"}
said = []
for folder in sys.argv[1:]:
    before = time.process_time()
    bag = DagBag(dag_folder=folder)
    said.append({
        "errors": bag.import_errors,
        "dags": {dag_id: sorted(dag.task_ids) for dag_id, dag in bag.dags.items()},
        "docs": {dag_id: dag.doc_md for dag_id, dag in bag.dags.items()},
        "heavy": sorted(HEAVY & sys.modules.keys()),
        "seconds": time.process_time() - before,
    })
print(json.dumps(said))
"""
BACKFILLS = {
    "every: 1 day": ["compute", "per_minute_is_final"],
    "every: 1 day, mode: late": ["compute", "per_minute_is_final", "replay"],
    "every: 1 day, mode: rebuild, publish: after_approval": [
        *("approve", "compute", "per_minute_is_final", "publish"),
    ],
    "every: 1 hour, mode: rebuild, publish: always": ["compute", "per_minute_is_final"],
    "every: often": None,
    "every: 1 day, mode: sometimes": None,
}

Found = dict[str, Any]
"""What Airflow finds in a project: errors, DAGs, their texts, heavy imports and CPU seconds."""


def read(home: Path, *projects: Path) -> list[Found]:
    """Read all projects in one process, because Airflow takes seconds to import. It is another
    process than this one, because the test checks what is imported."""
    clean = {k: v for k, v in os.environ.items() if "AIRFLOW" not in k}
    settings = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    folders = [str(project / "dags") for project in projects]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, *folders],
        env=clean | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: list[Found] = json.loads(done.stdout.splitlines()[-1])
    return said


def made(folder: Path) -> Path:
    for name in ("dags", "pipelines"):
        (folder / name).mkdir(parents=True)
    for name in ("streams.py", "declarations.py"):
        shutil.copyfile(SHIPPED / name, folder / "dags" / name)
    return folder


def add(project: Path, *names: str, keys: str = "") -> Path:
    for name in names:
        text = DECLARATION.replace("tiny", name)
        (project / f"pipelines/{name}.yml").write_text(text + keys)
    return project


def backfill(keys: str) -> str:
    return f"airflow: {{backfill: {{{keys}}}}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Found]:
    """By the name of a project, or by the keys of its backfills. ``many`` is read first, so its
    seconds include all imports."""
    folder = tmp_path_factory.mktemp("projects")
    projects = {"many": many(folder / "many"), "shipped": REPOSITORY}
    create_project(folder / "new")
    projects |= {"new": folder / "new", "faulty": faulty(folder / "faulty")}
    for number, keys in enumerate(BACKFILLS):
        projects[keys] = add(made(folder / str(number)), "shop", keys=backfill(keys))
    return dict(zip(projects, read(folder / "home", *projects.values()), strict=True))


def many(folder: Path) -> Path:
    project = add(made(folder), *(f"shop{number}" for number in range(1, 50)))
    (project / "dags/declarations.py").unlink()
    return add(project, "shop0", keys=backfill("every: 1 day"))


def faulty(folder: Path) -> Path:
    project = add(made(folder), "good")
    for name, text in (
        ("broken", "pipeline: broken\nsources: 3\ngold: {per_minute: {}, No Name: {}}\n"),
        ("unnamed", "pipeline: 7 of 9\n"),
        ("worse", "pipeline: [\n"),
    ):
        (project / f"pipelines/{name}.yml").write_text(text)
    return project


def test_the_shipped_dags(found: Mapping[str, Found]) -> None:
    shipped = found["shipped"]
    assert shipped["errors"] == {}
    examples = (
        *("anomalies", "attribution", "auctions", "auctions_kafka", "checkout", "checkout_kafka"),
        *("clicks", "hot_items", "rates", "revenue"),
    )
    assert set(shipped["dags"]) == SHARED | {
        f"{pipeline}__{what}" for pipeline in examples for what in ("stream", "control", "gold")
    } | {"auctions__bids_per_minute_by_hour"}
    assert shipped["dags"]["auctions__stream"] == ["preflight", "report", "supervise"]
    tables = ("bids_per_minute", "channels_sliding")
    emits = sorted(f"{table}{period}" for table in tables for period in ("", "-days"))
    assert shipped["dags"]["auctions__gold"] == [*emits, "wait"]


def test_a_new_project_has_the_dags_that_its_documents_count(found: Mapping[str, Found]) -> None:
    dags = set(found["new"]["dags"])
    of_streams = SHARED | {"shop__stream", "shop__control", "shop__gold"}
    assert dags == of_streams | {"shop__sales_per_hour_by_hour"}
    told = (SHIPPED / "README.md").read_text()
    assert {dag.replace("shop", "NAME") for dag in of_streams} <= set(re.findall(r"\w+__\w+", told))
    assert "That is six for this project" in told
    assert "has five, and a\nsixth" in (REPOSITORY / "docs/airflow.md").read_text()


def test_a_new_file_is_a_new_dag_and_nothing_heavy_is_read(found: Mapping[str, Found]) -> None:
    project = found["many"]
    assert project["errors"] == {}
    assert len(project["dags"]) == 153
    assert project["heavy"] == []
    # CPU seconds, including imports: about 1 on an idle machine.
    assert project["seconds"] < 5


@pytest.mark.parametrize(("keys", "tasks"), BACKFILLS.items())
def test_a_declaration_may_ask_for_backfills(
    found: Mapping[str, Found], keys: str, tasks: list[str] | None
) -> None:
    assert found[keys]["dags"].get("shop__backfill") == tasks
    assert bool(found[keys]["errors"]) == (tasks is None)


def test_only_the_result_that_a_person_has_approved_is_published(project: Path) -> None:
    keys = "every: 1 day, mode: rebuild, publish: after_approval"
    add(project, "shop", keys=backfill(keys))
    publish = build_dags(project / "pipelines")["shop__backfill"].get_task("publish")
    assert publish.upstream_task_ids == {"approve"}
    assert getattr(publish, "asks", None) == "compute"
    assert getattr(publish, "approval", None) == "approve"
    assert publish.trigger_rule == "none_failed_min_one_success"


def test_a_mistake_is_reported_with_file_and_line_and_ends_no_dag(
    found: Mapping[str, Found],
) -> None:
    """The wrong declaration keeps its DAGs, too: its stream runs and has to be supervised."""
    dags = found["faulty"]["dags"]
    assert set(dags) == SHARED | {
        f"{name}__{what}" for name in ("good", "broken") for what in ("stream", "control", "gold")
    }
    assert dags["broken__gold"] == ["per_minute", "per_minute-days", "wait"]
    assert dags["headgate__health"] == ["checks"]
    ((file, said),) = found["faulty"]["errors"].items()
    assert file.endswith("declarations.py")
    assert "faulty/pipelines/broken.yml:2: sources" in said
    assert "worse.yml:" in said
    assert "unnamed.yml:" in said


def used(project: Path) -> dict[str, str]:
    """The declaration file that the DAGs of each pipeline use."""
    found = declared_in(project / "pipelines", None)
    return {each.stream.name: each.stream.file.name for each in found}


@pytest.mark.parametrize("draft", ["new.yml", "a.yaml", "zoo.yml", "shop.yaml"])
def test_a_draft_beside_a_declaration_takes_nothing_over(project: Path, draft: str) -> None:
    add(project, "shop", "other")
    (own := project / "pipelines/shop.yml").rename(project / "pipelines/own")
    shutil.copyfile(project / "pipelines/own", project / "pipelines" / draft)
    assert used(project) == {"other": "other.yml", "shop": draft}
    (project / "pipelines/own").rename(own)
    assert used(project) == {"other": "other.yml", "shop": "shop.yml"}
    own.write_text("pipeline: [")
    assert used(project) == {"other": "other.yml"}, "as while it is being edited"


def test_a_pipeline_that_two_files_declare_is_reported_with_both(project: Path) -> None:
    add(project, "shop", "other")
    text = (project / "pipelines/shop.yml").read_text()
    (project / "pipelines/new.yml").write_text(text)
    (project / "pipelines/draft.txt").write_text(text)
    folder = project / "pipelines"
    with pytest.raises(ValueError, match="new.yml") as raised:
        require_declarations(folder)
    assert str(raised.value) == (
        f"{folder}/new.yml, {folder}/shop.yml: all declare the pipeline shop, and its DAGs use "
        "shop.yml. Keep one; a draft beside it needs another suffix, such as .txt"
    )
    assert "shop__stream" in build_dags(folder)
    (folder / "shop.yml").rename(folder / "old.yml")
    assert {dag for dag in build_dags(folder) if dag.startswith("shop")} == set()
    with pytest.raises(ValueError, match=r"it has no DAGs: none is shop\.yml"):
        require_declarations(folder)
    (folder / "old.yml").unlink()
    require_declarations(folder)
    assert used(project) == {"shop": "new.yml", "other": "other.yml"}


@pytest.mark.parametrize("of_headgate_up", [True, False])
def test_what_all_streams_share_is_on_with_headgate_up(
    project: Path, monkeypatch: pytest.MonkeyPatch, of_headgate_up: bool
) -> None:
    add(project, "shop")
    if of_headgate_up:
        monkeypatch.setenv(MARK, "its home")
    dags = build_dags(project / "pipelines")
    on = {dag_id for dag_id, dag in dags.items() if dag.is_paused_upon_creation is False}
    assert on == {"shop__control", *(SHARED if of_headgate_up else ())}
    checks = dags["headgate__health"].get_task("checks")
    assert checks.retries, "a worker that cannot start a task is no alarm"


def test_a_person_is_asked_again_if_airflow_fails_an_early_answer(project: Path) -> None:
    add(project, "shop", keys=backfill("every: 1 day, mode: rebuild, publish: after_approval"))
    dags = build_dags(project / "pipelines")
    assert all(
        dags[f"shop__{name}"].get_task("approve").retries for name in ("control", "backfill")
    )


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("auctions__stream", ("pause", "clear", "mark failed", "mark success", "delete")),
        ("auctions__control", ("Pause", "clear", "mark", "delete")),
        ("auctions__gold", ("Pause", "clear", "mark", "delete", "trigger")),
        ("headgate__health", ("Pause", "clear", "mark", "delete")),
        ("headgate__maintenance", ("Pause", "clear", "mark", "delete")),
    ],
)
def test_a_dag_says_what_airflows_buttons_do(
    found: Mapping[str, Found], what: str, words: tuple[str, ...]
) -> None:
    """Each shipped DAG has a text about its own buttons."""
    for word in words:
        assert word in found["shipped"]["docs"][what]
