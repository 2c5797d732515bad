"""Names of files are UTF-8 in Python and in a JVM, whatever the locale is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from headgate.machine.process_tree import utf8
from headgate.setup.doctor.environment import names_of_files

# Prints the encoding of names here, in a Python and in a JVM that this process starts.
ASKED = """
import json, subprocess, sys
from headgate.machine.process_tree.utf8 import use_utf8
use_utf8()
asked = "import sys; print(sys.getfilesystemencoding())"
python = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True).stdout
java = ["java", "-XshowSettings:properties", "-version"]
settings = subprocess.run(java, capture_output=True, text=True).stderr
(jvm,) = [line.split()[-1] for line in settings.splitlines() if "sun.jnu.encoding" in line]
print(json.dumps([sys.getfilesystemencoding(), python.strip(), jvm, sys.argv[1]]))
"""


@pytest.mark.parametrize(
    "settings",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "none.there"},
        {"LANG": "C", "LC_CTYPE": "C", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {},
    ],
    ids=str,
)
def test_names_are_utf8_in_any_locale(settings: dict[str, str]) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    done = subprocess.run(
        [sys.executable, "-c", ASKED, "gr\u00f6\u00dfe"],
        env=kept | settings,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == ["utf-8", "utf-8", "UTF-8", "gr\u00f6\u00dfe"]


def test_the_command_line_reads_its_arguments_as_utf8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli", "plan", "gr\u00f6\u00dfe"],
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert b"there is no pipeline gr\xc3\xb6\xc3\x9fe" in done.stderr


def test_a_machine_without_such_a_locale_is_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of_files().ok
    monkeypatch.setattr(utf8, "_LOCALES", ("none.there",))
    assert names_of_files().ok, "the locale of this process has UTF-8"
    monkeypatch.setattr("locale.getencoding", lambda: "ISO-8859-1")
    found = names_of_files()
    assert (found.ok, found.found) == (False, "ISO-8859-1, by the locale")
    assert "export LC_ALL=C.UTF-8" in found.remedy
