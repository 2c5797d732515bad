"""What holds for every verb: exit codes, errors, and a start-up that waits for nothing."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from headgate import exit_codes
from headgate.cli import declaration, hidden
from headgate.cli.verbs import VERBS, command_of
from headgate.errors import HeadgateError
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake


def test_help_explains_every_exit_code_and_names_every_verb(ask: Ask) -> None:
    code, out, _ = ask("--help")
    assert code == 0
    for number, meaning in exit_codes.MEANINGS.items():
        assert f"{number}  {meaning}" in out
    verbs = "run start stop restart status logs list plan ledger query files kafka demo doctor init"
    verbs += " upgrade savepoint repair compact vacuum pause resume up down"
    assert all(f"\n  {verb} " in out for verb in verbs.split())
    assert not [line for line in out.splitlines()[1:] if line.endswith("...")]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run"], ["run", "x", "--layer", "tin"], ["plan", "x", "--what"]]
)
def test_a_wrong_command_line_is_2(ask: Ask, arguments: list[str]) -> None:
    assert ask(*arguments)[0] == exit_codes.USAGE


def test_an_error_says_what_to_type_next_on_stderr(ask: Ask) -> None:
    code, out, err = ask("plan", "auctoins")
    assert code == 2
    assert out == ""
    assert 'did you mean "auctions"?' in err
    assert "headgate list" in err


def test_an_error_is_an_object_for_programs_too(ask: Ask) -> None:
    code, out, _ = ask("plan", "missing.yml", "--json")
    error = last_object(out)["error"]
    assert code == error["exit_code"] == 2
    assert "missing.yml" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "said", "help_of"),
    [
        (["nonsense"], "No such command 'nonsense'", "headgate --help"),
        (["run"], "Missing argument 'PIPELINE'", "headgate run --help"),
        (["plan", "x", "--what"], "No such option: --what", "headgate plan --help"),
        (["kafka", "topics", "--partitions", "2"], "belongs to --create", "kafka topics --help"),
    ],
)
def test_a_wrong_command_line_is_an_object_for_programs_too(
    ask: Ask, arguments: list[str], said: str, help_of: str
) -> None:
    code, out, err = ask(*arguments, "--json")
    error = last_object(out)["error"]
    assert code == error["exit_code"] == exit_codes.USAGE
    assert said in error["message"]
    assert help_of in error["remedy"]
    assert said in err
    assert ask(*arguments)[1] == ""


def test_help_is_no_error_for_programs(ask: Ask) -> None:
    code, out, _ = ask("plan", "--json", "--help")
    assert code == 0
    assert not out.splitlines()[-1].startswith("{")


def test_a_subclass_decides_its_exit_code(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(HeadgateError):
        exit_code = 5

    def refuse(*_: object, **__: object) -> None:
        raise Odd("odd", "correct it")

    monkeypatch.setattr(declaration, "load", refuse)
    assert ask("plan", "auctions") == (5, "", "odd\ncorrect it\n")


def test_a_fault_of_ours_is_one_line_and_a_log(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr(declaration, "load", fail)
    code, _, err = ask("plan", "auctions")
    first, second = err.splitlines()
    assert code == exit_codes.UNEXPECTED
    assert first == "ZeroDivisionError: first line"
    log = second.removeprefix("details: ")
    assert "Traceback" in Path(log).read_text()


@pytest.mark.parametrize("kind", [ValueError, HeadgateError])
def test_no_secret_is_in_an_answer_or_a_log(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise kind("given open sesame", "not open sesame") from OSError("open sesame")

    monkeypatch.setattr(hidden, "_hidden", frozenset())
    hidden.hide(["open sesame"])
    monkeypatch.setattr(declaration, "load", fail)
    _, out, err = ask("plan", "auctions", "--json")
    assert "given ***" in out
    assert "given ***" in err
    logs = [log.read_text() for log in tmp_path.rglob("*.log")]
    assert len(logs) == (kind is ValueError)
    assert not any("sesame" in text for text in [out, err, *logs])


HEAVY = {
    *("pyspark", "py4j", "pandas", "numpy", "pyarrow", "deltalake", "duckdb", "sqlglot"),
    *(
        "jsonschema",
        "ruamel",
        "pydantic",
        "rich",
        "psutil",
        "confluent_kafka",
        "airflow",
        "msgspec",
    ),
}
DECLARED = {"numpy", "pyarrow", "sqlglot", "ruamel", "pydantic", "psutil", "rich", "msgspec"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "may_load"),
    [
        ((), set()),
        (("--help",), set()),
        (("list", "--json"), DECLARED),
        (("status", "PIPELINE"), DECLARED | {"deltalake"}),
        (("ledger", "PIPELINE"), DECLARED | {"deltalake"}),
        (("query", "PIPELINE", "SELECT * FROM per_minute"), DECLARED | {"deltalake", "duckdb"}),
    ],
)
def test_an_answer_loads_only_what_it_needs(
    arguments: tuple[str, ...], may_load: set[str], lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    """Nearly all of its time is spent on imports."""
    typed = [
        word
        for argument in arguments
        for word in (of_lake if argument == "PIPELINE" else (argument,))
    ]
    code = (
        "import sys\n"
        "from headgate.cli.main import answer\n"
        f"code = answer({typed!r})\n"
        "sys.exit(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    loaded = HEAVY & set(done.stderr.splitlines()[-1].split())
    assert loaded <= may_load


def test_the_help_of_a_verb_begins_as_the_list_says() -> None:
    for name, (_, says) in VERBS.items():
        told = " ".join(str(command_of(name).help).split())
        assert told.startswith(says), name


@pytest.mark.slow
def test_the_process_ends_with_the_code_and_flushed_streams() -> None:
    command = [sys.executable, "-m", "headgate.cli", "plan", "auctions", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert last_object(done.stdout)["pipeline"] == "auctions"


def shell(command: str) -> tuple[int, str]:
    """The exit code of a shell line with `headgate` in it, and the output of the line."""
    line = command.replace("headgate", f"{sys.executable} -m headgate.cli")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_fault(closed: str) -> None:
    code, said = shell(f"headgate plan auctions {closed}")
    assert code == 0
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_reader_that_has_gone_leaves_the_exit_code(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("".join(f"k{i}: 1\n" for i in range(5_000)))
    code, said = shell(f"headgate plan {wrong} 2>&1 | head -c 9")
    assert code == exit_codes.USAGE
    assert "Traceback" not in said


def test_a_reader_that_has_enough_is_no_fault(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(declaration, "load", write)
    assert ask("plan", "auctions") == (exit_codes.OK, "", "")
