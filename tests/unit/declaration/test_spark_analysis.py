"""What is asked of Spark's analysis, how its answers are kept, and the SQL that then runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import spark
from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.expressions.guards import bounded
from headgate.declaration.expressions.spark import analyse
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import INT, STRING, DataType

STRUCT = parse_type("struct<a: int>")
WIDER = parse_type("struct<a: int, b: int>")


class _Asked:
    """Answers each question in the same way, and counts them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def analyse(self, text: str, columns: Mapping[str, DataType]) -> Mapping[str, Any]:
        self.texts.append(text)
        return {"type": "STRING", "regexes": []}

    def ask(self, request: Mapping[str, str]) -> Mapping[str, Any]:
        self.texts.append(request["text"])
        return {"type": "STRING", "regexes": []}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> _Asked:
    found = _Asked()
    monkeypatch.setattr(spark, "analyse", found.analyse)
    return found


def test_a_type_that_a_struct_has_is_part_of_the_sql(asked: _Asked) -> None:
    """A struct's text changes with a field that is added to it; the table must then be rebuilt."""
    before, after, same = (
        parse_expression("to_json(of)", {"of": of, "s": s}).text
        for of, s in ((STRUCT, STRING), (WIDER, STRING), (STRUCT, INT))
    )
    runs = "null_on_error(transform(sequence(0, 0), _i -> if(_i = 0, to_json(of), null))[0])"
    assert before == f"if('of struct<`a`: int>' is null, null, {runs})"
    assert before != after
    assert before == same
    texts = {parse_expression("hex(s)", {"of": of, "s": STRING}).text for of in (STRUCT, WIDER)}
    assert texts == {"null_on_error(transform(sequence(0, 0), _i -> if(_i = 0, hex(s), null))[0])"}


def test_a_plan_shows_what_was_written(asked: _Asked) -> None:
    text = parse_expression("hex(s)", {"s": STRING}).text
    assert text != "hex(s)"
    assert spark.as_written(f"coalesce(({text}), ({text}))") == "coalesce((hex(s)), (hex(s)))"


def test_what_these_rules_know_is_not_asked(asked: _Asked) -> None:
    assert parse_expression("lower(s)", {"s": STRING}).text == "lower(s)"
    for wrong in ("lowr(s)", "s + 1", "hex(s) + hex(t)", "rand()"):
        with pytest.raises(Invalid):
            parse_expression(wrong, {"s": STRING})
    assert asked.texts == []


def test_an_answer_is_kept_by_text_and_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = _Asked()
    monkeypatch.setattr(spark, "_ANALYZER", found)
    for columns in ({"s": STRING, "n": INT}, {"n": INT, "s": STRING}):
        assert analyse("hex(s)", columns) == {"type": "STRING", "regexes": []}
    assert found.texts == ["hex(s)"]
    analyse("hex(s)", {"s": INT})
    analyse("hex( s)", {"s": INT})
    assert found.texts == ["hex(s)", "hex(s)", "hex( s)"]
    (kept, *_) = sorted((tmp_path / ".cache/headgate/expressions").iterdir())
    kept.write_text("{", encoding="utf-8")  # as after a full disk
    for columns in ({"s": STRING, "n": INT}, {"s": INT}):
        analyse("hex(s)", columns)
    analyse("hex( s)", {"s": INT})
    assert len(found.texts) == 4
    assert json.loads(kept.read_text(encoding="utf-8")) == {"type": "STRING", "regexes": []}


def test_an_interrupted_question_does_not_leave_its_answer_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process answers every question with its own number."""
    started = list[subprocess.Popen[str]]()

    def start() -> subprocess.Popen[str]:
        answers = f'while read line; do echo \'{{"type": "{len(started)}"}}\'; done'
        pipe = subprocess.PIPE
        process = subprocess.Popen(["sh", "-c", answers], stdin=pipe, stdout=pipe, text=True)
        started.append(process)
        return process

    def interrupt() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(spark, "_start", start)
    analyzer = spark._Analyzer()
    assert analyzer.ask({"text": "hex(s)", "schema": ""}) == {"type": "0"}
    assert started[0].stdout is not None
    monkeypatch.setattr(started[0].stdout, "readline", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        analyzer.ask({"text": "hex(t)", "schema": ""})
    assert analyzer.ask({"text": "hex(u)", "schema": ""}) == {"type": "1"}
    analyzer._end_idle()
    assert None not in [process.poll() for process in started]


def test_no_place_to_keep_an_answer_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".cache").touch()
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = _Asked()
    monkeypatch.setattr(spark, "_ANALYZER", found)
    for _ in range(2):
        analyse("hex(s)", {})
    assert found.texts == ["hex(s)"] * 2


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("hex(s)", "hex(s)"),
        ("repeat(s)", "repeat(s)"),
        ("space(n)", "if((n) <= 1048576, space(n), null)"),
        ("space(length(space(n)))",
         "if((length(if((n) <= 1048576, space(n), null))) <= 1048576, "
         "space(length(if((n) <= 1048576, space(n), null))), null)"),
        ("map('a', s, 'b', s)", "map('a', s, 'b', s)"),
        ("map('a', s, 'a', s)",
         "if(size(array_distinct(array_compact(array('a', 'a')))) = size(array('a', 'a')), "
         "map('a', s, 'a', s), null)"),
        ("array_insert(ns, n, 1)", "if(abs(n) <= 100000, array_insert(ns, n, 1), null)"),
    ],
)  # fmt: skip
def test_guards_are_these(text: str, runs: str) -> None:
    assert bounded(text) == runs


_FORKED = """
import os, subprocess, sys
from headgate.declaration.expressions import spark
echo = "import json, os, sys\\nby = json.dumps({'by': os.getpid()})\\n"
echo += "for _ in sys.stdin: print(by, flush=True)"
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
spark._start = lambda: subprocess.Popen([sys.executable, "-c", echo], **pipes)
ask = lambda: spark._ANALYZER.ask({})["by"]
before = ask()
read, write = os.pipe()
child = os.fork()
if not child:
    os.write(write, str(ask()).encode())
    os._exit(0)
os.waitpid(child, 0)
print(before == ask(), before == int(os.read(read, 20)))
"""


def test_a_fork_has_an_analyzer_of_its_own() -> None:
    """With a shared pipe, an answer would be that of a question of the other process."""
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout == "True False\n"
