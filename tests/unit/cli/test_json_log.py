"""The output of a run as one JSON object per line, whichever code or process prints it."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from headgate.cli import hidden, json_log
from headgate.cli.json_log import JsonFormatter, JsonLog, JsonStream
from headgate.cli.main import answer
from headgate.cli.output import console
from headgate.cli.screen import Screen
from headgate.driver.progress import JobProgress
from headgate.lake.control.driver_reports import SourceProgress
from headgate.lake.storage.layout import Layout
from tests.unit.supervision.conftest import NOW


@pytest.fixture
def inner() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def stream(inner: io.StringIO) -> JsonStream:
    return JsonStream(inner, JsonLog("shop"))


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_log, "_active", None)
    monkeypatch.setattr(hidden, "_hidden", frozenset())
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(sys, "stdout", sys.stdout)


def lines(inner: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in inner.getvalue().splitlines()]


def test_each_printed_line_is_an_object(stream: JsonStream, inner: io.StringIO) -> None:
    print("one", file=stream)
    print("two ü", end="", file=stream)
    assert [each["message"] for each in lines(inner)] == ["one"]
    print("\n\n  \nthree", file=stream)
    assert [each["message"] for each in lines(inner)] == ["one", "two ü", "three"]
    assert {each["event"] for each in lines(inner)} == {"output"}


def test_stages_are_told_with_their_batch(stream: JsonStream, inner: io.StringIO) -> None:
    for text in ("… starting Spark", "… batch 7: reading", "what a library says"):
        print(text, file=stream)
    found = [(e["event"], e["message"], e["n"], e["stage"]) for e in lines(inner)]
    assert found == [
        ("stage", "starting Spark", None, "starting Spark"),
        ("stage", "batch 7: reading", 7, "reading"),
        ("output", "what a library says", 7, "reading"),
    ]


def test_the_batch_of_one_of_several_sources_names_it(
    stream: JsonStream, inner: io.StringIO
) -> None:
    progress = JobProgress("shop", "fused", 1, NOW, Layout.of("/lake", "shop"))
    progress.sources = {"orders": SourceProgress(7), "clicks": SourceProgress(2)}
    print("… source clicks: batch 3: reading", file=stream)
    stream.put(stream._log.batch(progress, "a batch"))
    print("… batch 8: reading", file=stream)
    first, second, third = lines(inner)
    assert [each.get("source") for each in (first, second, third)] == ["clicks", None, None]
    assert [each["n"] for each in (first, second, third)] == [3, None, 8]
    assert first["stage"] == "reading"
    assert second["sources"]["clicks"] == {"n": 2, "backlog": None}


def test_threads_mix_no_lines(stream: JsonStream, inner: io.StringIO) -> None:
    def work(name: str) -> None:
        for number in range(2000):
            print(f"{name} {number}", file=stream)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert len(lines(inner)) == 8000


def test_records_of_libraries_have_their_exception() -> None:
    formatter = JsonFormatter(JsonLog("shop"))
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord("py4j", 30, "f", 1, "a %s", ("b",), sys.exc_info())
    content = json.loads(formatter.format(record))
    assert (content["level"], content["logger"], content["message"]) == ("WARNING", "py4j", "a b")
    assert "ValueError: no" in content["exception"]


def test_a_screen_writes_stages_and_batches(inner: io.StringIO) -> None:
    log = JsonLog("shop")
    sys.stderr = JsonStream(inner, log)
    json_log._active = log
    screen = Screen(console(stderr=True), live=False)
    screen.say("batch 7: reading")
    assert [(e["event"], e["n"]) for e in lines(inner)] == [("stage", 7)]


def test_a_run_that_fails_says_so_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    (tmp_path / "shop.yml").write_text("pipeline: shop\n")
    assert answer(["run", str(tmp_path / "shop.yml"), "--log-format", "json"]) == 2
    out, err = capsys.readouterr()
    found = [json.loads(line) for line in (out + err).splitlines()]
    assert found[-1]["event"] == "error"
    assert (found[-1]["level"], found[-1]["exit_code"]) == ("ERROR", 2)
    assert found[-1]["remedy"]
    assert "DeclarationError" in found[-1]["exception"]


def test_secrets_are_in_no_traceback() -> None:
    hidden.hide(["hunter2"])
    try:
        raise ValueError("password hunter2")
    except ValueError:
        content = json.loads(JsonLog("shop").error("wrong", "do", 1))
    assert "hunter2" not in json.dumps(content)
    assert "ValueError" in content["exception"]


def test_an_answer_stays_the_only_thing_on_stdout() -> None:
    out = sys.stdout
    json_log.begin("json", "shop", answers=True)
    assert sys.stdout is out
    assert isinstance(sys.stderr, JsonStream)


DIVERTED = """
import os, sys
from pathlib import Path
from headgate.cli import json_log
from headgate.cli.log_file import divert
json_log.begin("json", "shop", answers=False)
divert(Path(sys.argv[1]))
print("an answer")
print("a remark", file=sys.stderr)
os.write(1, b"of the JVM\\n")
import logging
logging.getLogger("py4j").warning("of a library")
"""


def test_what_the_jvm_writes_is_diverted_and_the_rest_is_json(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", DIVERTED, str(log)],
        env=os.environ.copy(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["message"] == "an answer"
    assert json.loads(done.stderr)["message"] == "a remark"
    raw, library = log.read_text().splitlines()
    assert raw == "of the JVM"
    assert json.loads(library)["logger"] == "py4j"


def test_text_changes_nothing() -> None:
    out, err = sys.stdout, sys.stderr
    json_log.begin("text", "shop", answers=False)
    assert (sys.stdout, sys.stderr, json_log.active()) == (out, err, None)
