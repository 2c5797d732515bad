"""A process serves the declarations as they are now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.insight.metrics.samples import Histograms
from headgate.insight.metrics.watched import LOOK_EVERY, Watched
from tests.unit.insight.ledger.conftest import DECLARATION
from tests.unit.insight.metrics.conftest import NOW, Clock, value

Watch = Callable[..., Watched]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pipelines").mkdir()
    return tmp_path / "pipelines"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def watch(folder: Path, said: list[str], clock: Clock, tmp_path: Path) -> Watch:
    def watch(*named: Path, only_run: bool = False) -> Watched:
        return Watched(
            lambda: named or sorted(folder.glob("*.yml")),
            str(tmp_path / "lake"),
            Histograms(),
            only_run=only_run,
            say=said.append,
            monotonic=clock,
        )

    return watch


def write(folder: Path, name: str, text: str = DECLARATION) -> Path:
    file = folder / f"{name}.yml"
    file.write_text(text.replace("pipeline: tiny", f"pipeline: {name}"))
    return file


def names(watched: Watched, clock: Clock) -> list[str]:
    clock.now += LOOK_EVERY
    return [reading.declared.name for reading in watched.readings()]


def test_files_come_and_go(folder: Path, watch: Watch, clock: Clock) -> None:
    watched = watch()
    assert names(watched, clock) == []
    write(folder, "b")
    file = write(folder, "a")
    assert names(watched, clock) == ["a", "b"]
    file.unlink()
    assert names(watched, clock) == ["b"]


def test_a_named_file_that_is_deleted_is_reported_once(
    folder: Path, watch: Watch, said: list[str], clock: Clock
) -> None:
    file = write(folder, "a")
    watched = watch(file)
    assert names(watched, clock) == ["a"]
    file.unlink()
    assert [names(watched, clock) for _ in range(3)] == [["a"]] * 3, "its last version counts"
    assert len(said) == 1
    write(folder, "a", f"{DECLARATION}metrics: {{latency_within: 3 seconds}}\n")
    assert names(watched, clock) == ["a"]
    assert watched.readings()[0].is_current
    assert len(said) == 1


def test_files_are_looked_at_now_and_then(folder: Path, watch: Watch, clock: Clock) -> None:
    watched = watch()
    watched.readings()
    write(folder, "a")
    assert watched.readings() == ()
    assert names(watched, clock) == ["a"]
    first = watched.readings()
    clock.now += LOOK_EVERY
    assert watched.readings() == first, "what has not changed is not read anew"


def test_a_changed_declaration_counts(folder: Path, watch: Watch, clock: Clock) -> None:
    write(folder, "a")
    watched = watch()
    names(watched, clock)
    write(folder, "a", f"{DECLARATION}metrics: {{latency_within: 3 seconds}}\n")
    names(watched, clock)
    (reading,) = watched.readings()
    assert value(reading.refresh(NOW), "limit_seconds", "latency") == 3


def test_an_invalid_change_keeps_the_old_and_says_so(
    folder: Path, watch: Watch, clock: Clock, said: list[str]
) -> None:
    file = write(folder, "a")
    watched = watch()
    names(watched, clock)
    file.write_text("pipeline: [")
    assert names(watched, clock) == ["a"]
    assert names(watched, clock) == ["a"]
    (reading,) = watched.readings()
    assert value(reading.refresh(NOW), "readable", "declaration") == 0
    assert len(said) == 1
    write(folder, "a", f"{DECLARATION}\n# corrected\n")
    names(watched, clock)
    (reading,) = watched.readings()
    assert value(reading.refresh(NOW), "readable", "declaration") == 1


def test_one_that_was_never_valid_is_told_and_left_out(
    folder: Path, watch: Watch, clock: Clock, said: list[str]
) -> None:
    (folder / 'x"} 1.yml').write_text("no: thing")
    (folder / "folder.yml").mkdir()
    watched = watch()
    assert names(watched, clock) == []
    assert names(watched, clock) == []
    assert len(said) == 2


def test_a_name_that_two_files_declare_is_served_once(
    folder: Path, watch: Watch, clock: Clock
) -> None:
    text = write(folder, "a").read_text()
    (folder / "b.yml").write_text(f"{text}metrics: {{latency_within: 3 seconds}}\n")
    watched = watch()
    assert names(watched, clock) == ["a"]
    (reading,) = watched.readings()
    assert value(reading.refresh(NOW), "limit_seconds", "latency") == 300


@pytest.mark.parametrize("draft", ["a", "z"])
def test_a_draft_beside_a_declaration_counts_nowhere(
    folder: Path, watch: Watch, clock: Clock, draft: str
) -> None:
    text = write(folder, "shop").read_text()
    (folder / f"{draft}.yml").write_text(f"{text}metrics: {{latency_within: 3 seconds}}\n")
    watched = watch()
    assert names(watched, clock) == ["shop"]
    (reading,) = watched.readings()
    assert value(reading.refresh(NOW), "limit_seconds", "latency") == 300


def test_pipelines_that_have_never_run_may_be_left_out(
    folder: Path, watch: Watch, clock: Clock, tmp_path: Path
) -> None:
    write(folder, "a")
    watched = watch(only_run=True)
    assert names(watched, clock) == []
    (tmp_path / "lake" / "a" / "_headgate").mkdir(parents=True)
    assert names(watched, clock) == ["a"]
