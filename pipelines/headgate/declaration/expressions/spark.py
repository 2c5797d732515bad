"""Expressions whose rules only Spark knows: its analysis of their type, and how they run.

The analysis runs in a process of its own (``catalyst``), which starts at the first question, and
ends when nothing was asked for ``_IDLE`` seconds, or with this process. Its answers are kept by
text and columns.

Such an expression runs as ``null_on_error(...)`` (``machine/jvm.py``): what fails on a row is null
there. A call that could fill the memory has a guard (``guards.py``). Refused is what is not
deterministic, reads more than its row, or returns rows; and regular expressions that are not
literals, because Java's matcher can overflow its stack.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from headgate.commands import shell_command
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.guards import bounded
from headgate.declaration.expressions.hardening import check_length, harden
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.expressions.literals import check_time_literal
from headgate.declaration.expressions.patterns import check_regex
from headgate.declaration.expressions.tokens import Token, string_value
from headgate.declaration.expressions.typed import NotKnown, Reach, Typed
from headgate.declaration.names import nearest
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DATE, TIMESTAMP, DataType, Struct, parts

_FORMAT = 3  # of kept answers; raise it when the analyzer answers otherwise than before
_IDLE = 10.0  # seconds


def analyse(text: str, columns: Mapping[str, DataType]) -> Mapping[str, Any]:
    """What Spark finds about ``text`` (``declaration.catalyst.analyzer.Analysis``). Raises Invalid
    if Spark cannot be asked."""
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in sorted(columns.items()))
    kept = _place(text, schema)
    answer = _read(kept)
    if answer is None:
        answer = _ANALYZER.ask({"text": text, "schema": schema})
        _write(kept, answer)
    return answer


class _Analyzer:
    """The process that answers; it is started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._idle: threading.Timer | None = None

    def ask(self, request: Mapping[str, str]) -> Mapping[str, Any]:
        with self._lock:
            if self._idle:
                self._idle.cancel()
            process = self._process = self._process or _start()
            answer = ""
            try:
                print(json.dumps(request), file=process.stdin, flush=True)
                answer = process.stdout.readline() if process.stdout else ""
            except OSError:
                pass  # it has ended
            except BaseException:  # such as Ctrl-C: its answer would be read as the next one's
                self._end()
                raise
            if not answer:
                self._end()
                raise Invalid(
                    "Spark has to check this expression once, and Java did not start or ended; "
                    f"see {shell_command('doctor')}"
                )
            self._idle = threading.Timer(_IDLE, self._end_idle)
            self._idle.daemon = True
            self._idle.start()
        found: Mapping[str, Any] = json.loads(answer)
        return found

    def leave_to_parent(self) -> None:
        """In a fork of this process: the analyzer answers to the parent."""
        process, self._process, self._idle = self._process, None, None
        self._lock = threading.Lock()
        for stream in (process.stdin, process.stdout) if process else ():
            if stream:
                with suppress(OSError):
                    stream.close()
        if process:
            process.returncode = 0  # it is no child of the fork

    def _end_idle(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        """Closing its input ends the process, and with it Java."""
        if self._process:
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    with suppress(OSError):
                        stream.close()
            self._process.wait()
        self._process = None


_ANALYZER = _Analyzer()
os.register_at_fork(after_in_child=_ANALYZER.leave_to_parent)


def _start() -> subprocess.Popen[str]:
    # The modules of this process, also where its folder is on the path only in this process.
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "headgate.declaration.catalyst"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is for this process, which then closes the other's input
    )


def _place(text: str, schema: str) -> Path | None:
    asked = json.dumps([_FORMAT, _spark(), text, schema])
    with suppress(RuntimeError):
        name = hashlib.sha256(asked.encode()).hexdigest()
        return Path.home() / ".cache" / "headgate" / "expressions" / f"{name}.json"
    return None


@cache
def _spark() -> str:
    return version("pyspark")


def _read(kept: Path | None) -> Mapping[str, Any] | None:
    with suppress(OSError, ValueError):
        answer = json.loads(kept.read_text(encoding="utf-8")) if kept else None
        return answer if isinstance(answer, dict) else None
    return None


def _write(kept: Path | None, answer: Mapping[str, Any]) -> None:
    if kept is None:
        return
    # Without a place for it, Spark is asked again the next time.
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f".{kept.name}.{os.getpid()}.{threading.get_ident()}")
        draft.write_text(json.dumps(answer), encoding="utf-8")
        draft.replace(kept)


# Spark computes a part that is constant or occurs twice before the expression, outside of
# null_on_error(), and moves null_on_error() into branches. It does not do so with a branch that is
# in a lambda.
_BEFORE = "null_on_error(transform(sequence(0, 0), _i -> if(_i = 0, "
_AFTER = ", null))[0])"
_NO_SUCH_FUNCTION = "loadFunction"
_NO_SUCH_COLUMN = re.compile("^A column, .* with name `([^`]*)` cannot be resolved")
# What to write instead of a type that no column can have.
_INSTEAD = {
    "interval": "extract a part of it, or write timestampdiff(SECOND, from, to)",
    "binary": "write hex(...) or base64(...) around it",
    "timestamp_ntz": "write cast(... as timestamp) around it",
    "variant": "take a value of it with variant_get(..., '$.a', 'string')",
    "map": "the keys of a map are strings; write map_keys(...), or to_json(...)",
}


def analysed(
    text: str, tokens: tuple[Token, ...], scope: Scope, unknown: NotKnown
) -> tuple[Typed, str]:
    """The type of ``text``, and the SQL that runs. Raises Invalid with Spark's reason, or with that
    of ``unknown`` if Spark does not know either what it names, or Unresolved."""
    _check_time_literals(tokens)
    columns = {name: type_ for name, type_ in scope.items() if type_ is not None}
    answer = analyse(text, columns)
    if answer.get("unparsed") or _NO_SUCH_FUNCTION in answer.get("wrong", ""):
        raise Invalid(unknown.message, unknown.nearest, unknown.others)
    if missing := _NO_SUCH_COLUMN.search(answer.get("wrong", "")):
        if missing[1] in scope:
            raise Unresolved(missing[1])
        raise Invalid(f"unknown column {missing[1]!r}", nearest(missing[1], scope))
    for reason in ("wrong", "refused"):
        if reason in answer:
            raise Invalid(str(answer[reason]))
    for regex in answer["regexes"]:
        if regex is None:
            raise Invalid("a regular expression must be a literal text")
        check_regex(regex)
    type_ = _column_type(answer["type"].lower() if "<" not in answer["type"] else answer["type"])
    guarded = bounded(harden(text))
    if guarded != text and "wrong" in (found := analyse(guarded, columns)):
        raise Invalid(f"cannot run with the guards that Headgate adds: {found['wrong']}")
    runs = f"{_BEFORE}{guarded}{_AFTER}"
    read = {token.text.strip("`") for token in tokens if token.kind in ("word", "quoted")}
    structs = [f"{n} {t}" for n, t in sorted(columns.items()) if n in read and _has_struct(t)]
    if structs:
        # A struct's text or hash changes with a field that is added to the struct. So the type is a
        # part of the SQL, and thereby of the table's digest. Spark folds the condition away.
        runs = f"if('{', '.join(structs)}' is null, null, {runs})"
    check_length(runs)
    return Typed(type_, Reach.ANYWHERE), runs


def as_written(sql: str) -> str:
    """The SQL of an expression for a person: without what only keeps a failure from Spark."""
    return sql.replace(_BEFORE, "").replace(_AFTER, "") if _BEFORE in sql else sql


def _has_struct(type_: DataType) -> bool:
    return any(isinstance(part, Struct) for part in parts(type_))


def _check_time_literals(tokens: tuple[Token, ...]) -> None:
    """Spark reads ``date 'today'`` as a literal of the day on which it reads it."""
    for word, token in pairwise(tokens):
        kinds = {"date": DATE, "timestamp": TIMESTAMP, "timestamp_ltz": TIMESTAMP}
        kinds |= {"timestamp_ntz": TIMESTAMP}
        type_ = kinds.get(word.lower)
        if type_ and word.kind == "word" and token.kind in ("string", "raw"):
            check_time_literal(type_, string_value(token))


def _column_type(name: str) -> DataType:
    try:
        return parse_type(name)
    except Invalid as error:
        found = (instead for kind, instead in _INSTEAD.items() if name.startswith(kind))
        why = next(found, error.message)
        raise Invalid(f"is of the type {name}, which no column can have: {why}") from None
