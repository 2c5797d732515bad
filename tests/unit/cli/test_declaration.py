"""What a person may type for PIPELINE and --root."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from headgate.cli.declaration import declarations, find
from headgate.cli.options import command_at
from headgate.commands import program
from headgate.errors import UsageError
from headgate.lake.storage.places import absolute


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADGATE_ROOT", raising=False)
    return tmp_path


def place(*paths: str) -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("")


def test_a_name_is_looked_up_in_pipelines_then_here_then_in_examples() -> None:
    place("pipelines/a.yml", "a.yml", "b.yml", "pipelines/examples/b.yml")
    place("pipelines/examples/c.yml")
    assert find("a") == Path("pipelines/a.yml")
    assert find("b") == Path("b.yml")
    assert find("c") == Path("pipelines/examples/c.yml")


def test_of_two_suffixes_the_usual_one_counts() -> None:
    place("pipelines/a.yaml", "pipelines/a.yml")
    assert find("a") == Path("pipelines/a.yml")


def test_an_example_of_the_package_is_found_from_anywhere() -> None:
    assert find("auctions").is_absolute()
    assert find("auctions") in list(declarations())


def test_a_path_is_taken_as_it_is() -> None:
    place("elsewhere/a.yml")
    assert find("elsewhere/a.yml") == Path("elsewhere/a.yml")
    place("a.txt")
    assert find("./a.txt") == Path("a.txt")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("a.yml", "^a.yml: there is no such file"),
        ("folder/a", "^folder/a: there is no such file"),
        ("a", "^there is no pipeline a"),
    ],
)
def test_what_is_not_there_is_refused(typed: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find(typed)


def test_root_becomes_absolute_once(here: Path) -> None:
    assert absolute("lake") == str(here / "lake")
    assert absolute("s3://bucket/lake/") == "s3://bucket/lake"


def test_a_command_names_the_root_where_it_matters(here: Path) -> None:
    assert command_at("run", "a", str(here / "lake"), "--once") == "headgate run a --once"
    assert command_at("run", "a", "/other") == "headgate run a --root /other"


def test_a_command_with_spaces_can_be_pasted(here: Path) -> None:
    said = command_at("query", "my files/a.yml", "/my lake", "SELECT 1")
    assert shlex.split(said) == [
        *("headgate", "query", "my files/a.yml", "--root", "/my lake", "SELECT 1")
    ]


def test_a_program_off_the_path_is_called_by_its_own(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(".venv/bin/headgate")
    Path(".venv/bin/headgate").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(here / ".venv/bin/headgate"), "demo"])
    monkeypatch.setenv("PATH", "/usr/bin")
    assert program() == ".venv/bin/headgate"
    monkeypatch.setenv("PATH", str(here / ".venv/bin"))
    assert program() == "headgate"
