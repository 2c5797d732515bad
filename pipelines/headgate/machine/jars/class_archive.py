"""The archive of the classes that a driver's JVM loads, recorded once per installation.

A JVM that maps the archive into memory starts with a quarter less CPU time. ``python -m
headgate.machine.jars.class_archive`` records it if it is missing: it runs the demo, whose JVM
writes the archive. Without an archive that fits the JVM and the jars, everything runs as before.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from headgate.errors import HeadgateError
from headgate.machine.jars import java
from headgate.machine.jars.cache import cache_folder

SWITCH = "HEADGATE_CLASS_ARCHIVE"
"""The environment variable with the path of the archive; ``off`` disables archives."""
_DRAFT = "HEADGATE_CLASS_ARCHIVE_DRAFT"
"""In the environment of the recorded run: the file that its JVM writes."""
TRY_AGAIN = 86_400.0  # seconds after a failed recording
_RUN = (sys.executable, "-m", "headgate.cli", "demo", "--events", "1000")


def path() -> Path | None:
    """Where the archive of this Java and these jars is, or would be; None if archives are disabled,
    or if Java or Spark's jars are not found."""
    chosen = os.environ.get(SWITCH)
    if chosen:
        return None if chosen == "off" else Path(chosen).absolute()
    with suppress(HeadgateError, OSError):
        folder, machine, jars = cache_folder(), java.executable(), _jars()
        if machine is not None and jars is not None:
            place, content = _digest(_place(machine, jars)), _digest(_content(machine, jars))
            return folder / f"classes-{place}-{content}.jsa"
    return None


def jvm_options() -> str:
    """The options of a driver's JVM for the archive. The JVM verifies the archive's checksums, and
    silently ignores an archive that does not fit. A truncated archive would crash the JVM, so it
    is detected here. Spark splits these options as a shell does.
    """
    if draft := os.environ.get(_DRAFT):
        return f"-XX:ArchiveClassesAtExit={shlex.quote(draft)}"
    archive = path()
    if archive is None or not _is_whole(archive):
        return ""
    quiet = "-Xlog:cds*=off -Xlog:cds+dynamic=off"
    taken = f"-XX:SharedArchiveFile={shlex.quote(str(archive))}"
    return f"-Xshare:auto -XX:+VerifySharedSpaces {quiet} {taken}"


def record(run: Sequence[str] = _RUN) -> bool:
    """Record the archive if there is none. Returns whether there is one now. Takes a minute.
    One process records at a time. No process uses an incomplete archive."""
    archive = path()
    if archive is None or _is_whole(archive):
        return archive is not None
    with suppress(OSError, Timeout):
        archive.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{archive}.lock", timeout=0):
            _tried(archive).touch()
            for draft in archive.parent.glob(f".{archive.name}.*"):
                draft.unlink()  # left by a recording that was killed
            draft = archive.with_name(f".{archive.name}.{os.getpid()}")
            if _run_to_its_end(run, draft) and draft.is_file():
                _size(archive).write_text(str(draft.stat().st_size), encoding="ascii")
                draft.replace(archive)
                _forget_others(archive)
            draft.unlink(missing_ok=True)
    return _is_whole(archive)


def record_in_background(
    run: Sequence[str] = (sys.executable, "-m", "headgate.machine.jars.class_archive"),
) -> subprocess.Popen[bytes] | None:
    """Start another process that records, at the lowest priority; at most once a day."""
    archive = path()
    if archive is None or os.environ.get(SWITCH) or os.environ.get(_DRAFT) or _is_whole(archive):
        return None
    with suppress(OSError):
        if time.time() - _tried(archive).stat().st_mtime < TRY_AGAIN:
            return None
    quiet = subprocess.DEVNULL
    with suppress(OSError):
        return subprocess.Popen(
            ["nice", "-n", "19", *run],
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
        )
    return None


def _run_to_its_end(run: Sequence[str], draft: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*run, "--root", str(Path(folder) / "demo")],
            env=os.environ | {_DRAFT: str(draft)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        code = process.wait()
        while _lives(process.pid):  # the JVM writes after Python has ended
            time.sleep(0.2)
    return code == 0


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _is_whole(archive: Path) -> bool:
    with suppress(OSError):
        return str(archive.stat().st_size) == _size(archive).read_text(encoding="ascii")
    return False


def _size(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.size")


def _tried(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.tried")


def _forget_others(archive: Path) -> None:
    """Delete the archives of this Java and these jars from before an upgrade."""
    place = archive.name.rpartition("-")[0]
    for other in archive.parent.glob(f"{place}-*.jsa*"):
        if not other.name.startswith(archive.name):
            other.unlink()


def _jars() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) / "jars" if places else None


def _place(machine: Path, jars: Path) -> Iterator[str]:
    yield str(machine.resolve())
    yield str(jars)


def _content(machine: Path, jars: Path) -> Iterator[str]:
    """The properties that an archive must match: the release of Java, and the jars."""
    release = machine.resolve().parents[1] / "release"
    yield release.read_text(encoding="utf-8") if release.is_file() else ""
    for jar in sorted(jars.iterdir()):
        stat = jar.stat()
        yield f"{jar.name} {stat.st_size} {stat.st_mtime_ns}"


def _digest(parts: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(0 if record() else 1)
