"""Fetches the locked jars with the Ivy that PySpark ships. Needs the network and Java."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from filelock import FileLock

from headgate import exit_codes
from headgate.commands import INSTALL_AGAIN, shell_command
from headgate.errors import HeadgateError, cause_of
from headgate.machine.jars import java
from headgate.machine.jars.cache import cache_folder, cached_jars, matches, problems
from headgate.machine.jars.lock import Jar, LockSet, locked

# Some dozens of small jars take a minute. A resolver that hangs must not block a build forever.
_TIMEOUT_SECONDS = 600


class CacheError(HeadgateError, code=exit_codes.MACHINE):
    """The folder of the jars cannot be written."""


def fetch(lock: LockSet = LockSet.SPARK) -> tuple[Path, ...]:
    """Fetch the missing and damaged jars of a lock into the cache. Does nothing if there are none.

    A jar appears in the cache only complete and with the pinned SHA-256 (renamed into place), so
    any number of processes may fetch at once. Raises HeadgateError; leaves no partial files.
    """
    folder = cache_folder()
    if not problems(folder, locked(lock)):
        return cached_jars(lock)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".fetch.lock"):
            wrong = problems(folder, locked(lock))
            _bring(folder, tuple(j for j in locked(lock) if j.file_name in wrong))
    except OSError as error:
        why = "it is a file" if folder.is_file() else cause_of(error)
        raise CacheError(
            f"the jars cannot be kept in {folder}: {why}",
            "choose another folder: export HEADGATE_JARS=<folder>",
        ) from error
    return cached_jars(lock)


def _bring(folder: Path, wanted: tuple[Jar, ...]) -> None:
    if not wanted:
        return
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
        draft = Path(name)
        output = _run_ivy(draft, wanted)
        for jar in wanted:
            _accept(draft / "lib" / jar.file_name, jar, output)
        for jar in wanted:
            (draft / "lib" / jar.file_name).replace(folder / jar.file_name)


def _accept(path: Path, jar: Jar, output: str) -> None:
    if not path.is_file():
        raise HeadgateError(
            f"{jar.coordinates} could not be fetched. Ivy says:\n{_last_lines(output)}",
            "Check the network and run it again; behind a mirror: "
            "export HEADGATE_IVY_SETTINGS=<ivysettings.xml>",
        )
    if not matches(path, jar):
        raise HeadgateError(
            f"{jar.coordinates} was fetched but is not the jar that the lock in infra/ pins "
            f"(expected {jar.size} bytes, sha256 {jar.sha256}). It was deleted.",
            "Do not use that repository; name another: "
            "export HEADGATE_IVY_SETTINGS=<ivysettings.xml>",
        )


def _run_ivy(draft: Path, wanted: tuple[Jar, ...]) -> str:
    ivy_file = draft / "ivy.xml"
    ivy_file.write_text(ivy_xml(wanted), encoding="utf-8")
    settings = os.environ.get("HEADGATE_IVY_SETTINGS")
    command = [
        *(str(_java()), "-jar", str(ivy_jar())),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(ivy_file), "-cache", str(draft / "cache")),
        # In Ivy, a jar for OSGi has the type `bundle`.
        *("-types", "jar", "bundle"),
        *("-retrieve", str(draft / "lib" / "[artifact]-[revision].[ext]")),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise HeadgateError(
            f"The jars could not be fetched within {_TIMEOUT_SECONDS} seconds.",
            "Check the network and run it again.",
        ) from error
    return done.stdout + done.stderr


def ivy_xml(wanted: tuple[Jar, ...]) -> str:
    """An Ivy file of exactly ``wanted``.

    It is not transitive: the lock names every jar, and resolving Spark's parents takes minutes.
    """
    dependencies = "\n".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.artifact)} "
        f'rev={quoteattr(jar.revision)} transitive="false" conf="default->master"/>'
        for jar in wanted
    )
    return (
        '<ivy-module version="2.0"><info organisation="headgate" module="jars"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        f"<dependencies>\n{dependencies}\n</dependencies></ivy-module>\n"
    )


def ivy_jar() -> Path:
    """The Ivy inside the installed PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(folder).glob("jars/ivy-*.jar")):
            return jar
    raise HeadgateError(
        "PySpark, which brings the resolver for the jars, is not installed.",
        INSTALL_AGAIN,
    )


def _java() -> Path:
    found = java.executable()
    if found is None:
        raise HeadgateError(
            "Java was not found: neither JAVA_HOME nor PATH leads to it.",
            f"See what to install: {shell_command('doctor')}",
        )
    return found


def _last_lines(output: str) -> str:
    telling = [line for line in output.splitlines() if line.strip(" :\t")]
    return "\n".join(f"  {line.strip()}" for line in telling[-8:])
