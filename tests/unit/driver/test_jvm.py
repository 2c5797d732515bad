"""Only one module uses the JVM behind PySpark, so names that PySpark may change are in one
place."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import headgate
from headgate.driver.session import stop_session
from headgate.machine.jvm import has_ended, remember_functions

ENGINE = Path(headgate.__file__).parent
INTERNAL = re.compile(
    r"\._(gateway|jvm|jsc|jdf|jc|jcols|jseq|jmap|jrdd|jsparkSession|jreader|jwrite|sc)\b"
)


def test_no_other_module_knows_py4j() -> None:
    found = [p for p in ENGINE.rglob("*.py") if INTERNAL.search(p.read_text())]
    assert found == [ENGINE / "machine/jvm.py"]


def session(process: subprocess.Popen[bytes] | None) -> Any:
    """A session whose JVM is ``process``."""

    def ends() -> None:
        assert process is None or process.poll() is None, "it cannot be reached"

    gateway = SimpleNamespace(**({} if process is None else {"proc": process}))
    return cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway), stop=ends))


def test_a_jvm_that_was_killed_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not has_ended(session(process), within=0)
        stop_session(session(process))
        process.kill()
        assert has_ended(session(process), within=20)
    stop_session(session(process))


def test_the_jvm_of_another_program_is_not_examined() -> None:
    assert not has_ended(session(None))


def test_functions_are_looked_up_once_in_all_sessions_of_a_jvm() -> None:
    asked: list[str] = []

    class Class:
        def __getattr__(self, name: str) -> str:
            asked.append(name)
            return name

    class View:
        def __getattr__(self, name: str) -> Class:
            asked.append(name)
            return Class()

    view = View()
    for _ in range(2):
        remember_functions(cast(Any, SimpleNamespace(_jvm=view)))
        assert view.functions.col == "col"
        assert view.functions.lit == "lit"
    assert sorted(asked) == sorted(
        ["org.apache.spark.sql.functions", "functions", "PythonUtils", "col", "lit"]
    )
