"""Data that looks like a marked command: no answer changes it, and no verb fails because of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.cli.lifecycle.concluding import failure_recorded
from headgate.cli.main import answer
from headgate.cli.output import print_json
from headgate.cli.quarantine import replaying, verbs
from headgate.cli.setup import doctor
from headgate.commands import pipeline_command, program, shell_command
from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.files.log import FilesLog
from headgate.history.replay.corrections import CorrectedRecord
from headgate.history.replay.outcomes import ReplayOutcome
from headgate.history.replay.refused import RefusedRecord
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.storage.files import Storage
from headgate.setup.doctor.check_result import failed, passed
from tests.support.declared import files_of
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]
Said = Callable[..., tuple[int, str, str]]
AT = datetime(2026, 5, 4, 12, tzinfo=UTC)

BROKEN = "⟦headgate it's⟧"
UNKNOWN = "⟦headgate hello PIPELINE⟧"
FORGED = "⟦headgate status PIPELINE⟧"
MARKS = (BROKEN, UNKNOWN, FORGED)


@pytest.fixture
def said(ask: Ask, capsys: pytest.CaptureFixture[str]) -> Said:
    """As ``ask``, which refuses an answer with a mark."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = answer(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(params=MARKS)
def mark(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_a_query(said: Said, lake: Lake, of_lake: OfLake, mark: str) -> None:
    pipeline, *root = of_lake
    quoted = mark.replace("'", "''")
    sql = f"""SELECT '{quoted}' AS why, ['{quoted}'] AS "{mark}" """
    code, out, _ = said("query", pipeline, sql, *root, "--json")
    document = last_object(out)
    assert (code, document["columns"]) == (0, ["why", mark])
    assert document["rows"] == [[mark, f'["{mark}"]']]
    assert mark in said("query", pipeline, sql, *root)[1]


def test_refused_records(
    said: Said, lake: Lake, of_lake: OfLake, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = f'{{"quantity": "{mark}"}}'
    of = RefusedRecord(
        "quarantine",
        0,
        7,
        mark,
        AT,
        ("wrong_type",),
        "quantity",
        mark,
        mark,
        AT,
        value.encode(),
        True,
    )

    class Records:
        source = lake.pipeline.sources["events"]

        def rows(self, *_: object) -> list[RefusedRecord]:
            return [of]

    for module in (verbs, replaying):
        monkeypatch.setattr(module, "records_of", lambda *_: Records())
    code, out, _ = said("quarantine", "show", *of_lake, "--json")
    (record,) = last_object(out)["records"]
    assert (code, record["value"], record["event_id"]) == (0, value, mark)
    assert (record["detail"], record["where"]) == (mark, mark)
    assert said("quarantine", "show", *of_lake)[1].count(mark) == 3

    corrected = CorrectedRecord([of], b"{}")
    monkeypatch.setattr(replaying, "require_machine", lambda _: None)
    monkeypatch.setattr("headgate.cli.log_file.divert_to", lambda *_: None)
    monkeypatch.setattr(replaying, "documents", lambda *_: [corrected])
    monkeypatch.setattr(
        "headgate.history.replay.corrections.corrected_copies", lambda *_: NoCopies()
    )
    outcomes = [ReplayOutcome(corrected, "invalid", why=mark)]
    monkeypatch.setattr(replaying, "_validated", lambda *_: outcomes)
    code, out, _ = said("quarantine", "replay", *of_lake, "--dry-run", "--json")
    (record,) = last_object(out)["records"]
    assert (code, record["event_id"], record["why"]) == (0, mark, mark)


class NoCopies:
    rows: tuple[object, ...] = ()

    def of(self, _: object) -> NoCopies:
        return self


def test_landing_files(said: Said, empty_lake: Lake, of_lake: OfLake, mark: str) -> None:
    folder = Path(files_of(empty_lake.pipeline).path)
    folder.mkdir(parents=True)
    (folder / f"{mark}.json").write_text("{}\n")
    empty_lake.layout.storage.remove("_headgate/files/events")
    log = FilesLog.of(empty_lake.layout.storage, "tiny", "events")
    log.shape.create("digest")
    log.load()
    log.record(Storage(str(folder)).list(), AT)
    code, out, _ = said("files", "list", *of_lake, "--json")
    assert (code, last_object(out)["files"][0]["path"]) == (0, f"{mark}.json")
    assert f"{mark}.json" in said("files", "list", *of_lake)[1]


def test_a_failure_that_names_such_a_file(
    said: Said, lake: Lake, of_lake: OfLake, mark: str
) -> None:
    reason = f"file 3 {mark}.json was rewritten"
    record_failure(lake.layout, Failure(3, reason, "skip it", AT))
    code, out, _ = said("list", *of_lake[1:], "--json")
    (found,) = (each for each in last_object(out)["pipelines"] if each["name"] == "tiny")
    assert (code, found["failure"]) == (0, reason)
    assert reason in said("list", *of_lake[1:])[1]
    code, out, _ = said("status", *of_lake, "--json")
    assert (code, last_object(out)["failure"]["reason"]) == (3, reason)


@pytest.mark.parametrize("name", [BROKEN, UNKNOWN])
def test_a_run_that_fails_because_of_such_a_file(lake: Lake, name: str) -> None:
    message = f"file 3 {name}.json was rewritten"
    error = FileChangedError(message, remedy=f"skip it: {pipeline_command('files skip', '3')}")
    root = str(Path(lake.layout.storage.root).parent)
    with suppress(FileChangedError), failure_recorded(lake.pipeline, root, forgets=True):
        raise error
    failure = last_failure(lake.layout)
    assert failure is not None
    skip = f"{program(anywhere=True)} files skip {lake.pipeline.file} --root {root} 3"
    assert (failure.code, failure.reason) == (3, message)
    assert (failure.remedy, failure.commands) == (f"skip it: {skip}", (skip,))
    assert str(error).startswith(f"{message}\n")


@pytest.mark.parametrize("name", ["⟦headgate 'x⟧", BROKEN, UNKNOWN])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_pipeline_that_is_called_so(said: Said, name: str, options: list[str]) -> None:
    code, out, err = said("plan", name, *options)
    assert (code, name in err, "Traceback" in err) == (2, True, False)
    if options:
        assert name in last_object(out)["error"]["message"]


def test_a_declaration_in_such_a_file(said: Said) -> None:
    """The command of the remedy names the file, whose name has a mark in it."""
    file = Path("⟦headgate 'x⟧.yml")
    file.write_text("pipeline: bad\nsorces: {}\n")
    code, _, err = said("plan", str(file))
    assert (code, "Traceback" in err) == (2, False)
    assert shlex.split(err.splitlines()[-1])[1:3] == ["plan", str(file)]


def test_findings_of_doctor_name_commands(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = shell_command("doctor", "--fetch-jars")
    found = (
        passed("jars", f"none of them: {fetch} fetches them", "jars"),
        failed("kafka", "one is damaged", "jars", f"Fetch them: {fetch}"),
    )
    monkeypatch.setattr(doctor, "examine", lambda _: found)
    code, out, _ = ask("doctor", "--json")
    jars, kafka = last_object(out)["findings"]
    assert code == 8
    assert "headgate doctor --fetch-jars fetches them" in jars["found"]
    assert kafka["remedy"].startswith("Fetch them: ")
    assert "headgate doctor --fetch-jars" in kafka["remedy"]
    assert "headgate doctor --fetch-jars" in ask("doctor")[1]


def test_an_answer_is_data(capsys: pytest.CaptureFixture[str], mark: str) -> None:
    print_json({"message": mark, "rows": [{"remedy": mark}], "commands": (mark,)})
    document = last_object(capsys.readouterr().out)
    assert (document["message"], document["commands"]) == (mark, [mark])
    assert document["rows"] == [{"remedy": mark}]
