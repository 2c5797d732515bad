"""The archive of classes: where it is, how it is created, and that no bytes in it stop a JVM."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from headgate.machine.jars import class_archive, java
from headgate.machine.jars.class_archive import jvm_options, path, record, record_in_background

Damage = Callable[[bytes], bytes]


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The path of the archive, which does not exist yet; the cache is a folder of this test."""
    monkeypatch.delenv(class_archive.SWITCH)
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "cache"))
    found = path()
    assert found is not None
    assert found.parent == tmp_path / "cache"
    return found


def python(code: str) -> tuple[str, ...]:
    """The command of a run that is recorded. In ``code``, ``draft`` is the file that its JVM would
    write."""
    named = f"import os, pathlib, sys; draft = pathlib.Path(os.environ[{class_archive._DRAFT!r}])\n"
    return (sys.executable, "-c", named + code)


WRITES = python("draft.write_text('classes')")


def test_an_archive_appears_whole_and_is_recorded_once(archive: Path) -> None:
    assert jvm_options() == ""
    assert record(WRITES)
    assert archive.read_text() == "classes"
    assert str(archive) in jvm_options()
    assert record(python("sys.exit('a second time')"))


@pytest.mark.parametrize("name", ["a b", "it's", 'a "b"', "a\\b", "$HOME"])
def test_any_folder_can_have_it(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / name))
    assert record(WRITES)
    assert shlex.split(jvm_options())[-1] == f"-XX:SharedArchiveFile={path()}"
    monkeypatch.setenv(class_archive._DRAFT, str(tmp_path / name))
    assert shlex.split(jvm_options()) == [f"-XX:ArchiveClassesAtExit={tmp_path / name}"]


@pytest.mark.parametrize(
    "code",
    [
        "draft.write_text('classes'); sys.exit(1)",
        "draft.write_text('classes'); os.kill(os.getpid(), 9)",
        "pass",
    ],
)
def test_a_run_that_fails_leaves_nothing(archive: Path, code: str) -> None:
    assert not record(python(code))
    assert not list(archive.parent.glob("*.jsa"))
    assert not list(archive.parent.glob(f".{archive.name}.*"))


def test_what_a_killed_recording_left_goes_with_the_next(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    left = archive.with_name(f".{archive.name}.17")
    left.write_text("half of the cla")
    assert record(WRITES)
    assert not left.exists()


def test_one_process_records_at_a_time(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    with FileLock(f"{archive}.lock"):
        assert not record(WRITES)
    assert record(WRITES)


def test_an_upgrade_has_an_archive_of_its_own_and_removes_the_other(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record(WRITES)
    jars = tmp_path / "jars"
    jars.mkdir()
    monkeypatch.setattr(class_archive, "_jars", lambda: jars)
    (jars / "a.jar").write_text("one")
    first = path()
    assert first not in (None, archive)
    assert record(WRITES)
    (jars / "a.jar").write_text("another")
    assert path() != first
    assert record(WRITES)
    assert sorted(archive.parent.glob("*.jsa")) == sorted(filter(None, (archive, path())))


def test_it_can_be_switched_off(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(WRITES)
    monkeypatch.setenv(class_archive.SWITCH, "off")
    assert (path(), jvm_options(), record(WRITES)) == (None, "", False)
    assert record_in_background(WRITES) is None


def test_in_the_background_it_is_tried_once_a_day(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not record(python("sys.exit(1)"))
    assert record_in_background(WRITES) is None
    monkeypatch.setattr(class_archive, "TRY_AGAIN", 0.0)
    process = record_in_background(WRITES)
    assert process is not None
    process.wait(60)


def test_a_cache_that_may_not_be_written_is_no_fault(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.parent.write_text("a file where the folder would be")
    assert not record(WRITES)
    assert jvm_options() == ""


def a_jvm(options: str, folder: Path) -> tuple[str, bool]:
    """The output of a JVM with ``options``, and whether it loaded classes from an archive of
    ours."""
    machine, jars = java.executable(), class_archive._jars()
    assert machine is not None
    assert jars is not None
    launcher = next(jars.glob("spark-launcher*.jar"))
    loaded = folder / "loaded.txt"
    done = subprocess.run(
        [
            *(str(machine), *shlex.split(options), f"-Xlog:class+load:file={loaded}"),
            *("-cp", str(launcher), "org.apache.spark.launcher.Main"),
        ],
        cwd=folder,  # a JVM that crashes writes its report here
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr, "shared objects file (top)" in loaded.read_text()


def flipped(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """An archive that a real JVM wrote, and the output of that JVM."""
    folder = tmp_path_factory.mktemp("recorded")
    said, _ = a_jvm(f"-XX:ArchiveClassesAtExit={folder / 'draft'} -Xlog:cds*=off", folder)
    return (folder / "draft").read_bytes(), said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "is_taken"),
    [
        (lambda sound: sound, True),
        (flipped, False),
        (lambda sound: sound[: len(sound) // 2], False),
        (lambda sound: bytes(reversed(sound)), False),
        (lambda _: b"", False),
    ],
    ids=["sound", "a byte flipped", "cut", "rubbish", "empty"],
)
def test_no_bytes_of_an_archive_stop_a_jvm_or_make_it_talk(
    archive: Path, recorded: tuple[bytes, str], tmp_path: Path, damage: Damage, is_taken: bool
) -> None:
    sound, said = recorded
    (tmp_path / "sound").write_bytes(sound)
    assert record(
        python(f"draft.write_bytes(pathlib.Path({str(tmp_path / 'sound')!r}).read_bytes())")
    )
    archive.write_bytes(damage(sound))
    assert a_jvm(jvm_options(), tmp_path) == (said, is_taken)
