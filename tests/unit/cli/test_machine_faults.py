"""A full disk and missing rights are reported as such, wherever they occur first."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headgate.cli import declaration, log_file
from headgate.cli.machine_faults import machine_fault
from tests.unit.cli.conftest import Ask

OfLake = tuple[str, str, str]


def of(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/lake/x")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (of(errno.ENOSPC), "the disk is full (No space left on device: /lake/x)"),
        (of(errno.EDQUOT), "the disk is full"),
        (RuntimeError("Caused by: java.io.IOException: No space left on device"), "disk is full"),
        (of(errno.EACCES), "Permission denied: /lake/x"),
        (of(errno.EROFS), "Read-only file system: /lake/x"),
        (RuntimeError("one\nlost: x (Permission denied)"), "Permission denied: lost: x"),
        (OSError(errno.EACCES, "open '/x': Permission denied"), "open '/x'"),
        (of(errno.EMFILE), "Too many open files: /lake/x"),
        (of(errno.EIO), "Input/output error: /lake/x"),
        (of(errno.ENOMEM), "Cannot allocate memory: /lake/x"),
    ],
)
def test_what_the_machine_refused(error: Exception, said: str) -> None:
    found = machine_fault(error)
    assert found is not None
    assert said in found.message
    assert found.exit_code == 8


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for error in (
        NotADirectoryError(errno.ENOTDIR, "Not a directory", str(file / "shop" / "x")),
        OSError(errno.ENOTDIR, f"Failed to open local file '{file}/shop/x'. Not a directory"),
        RuntimeError(f"Failed to open local file '{file}/shop/x'. Not a directory"),
    ):
        found = machine_fault(error)
        assert found is not None
        assert found.message == f"{file} is a file, and a folder is needed"
    assert machine_fault(of(errno.ENOTDIR)) is not None


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "PIPELINE"],
        ["list"],
        ["pause", "PIPELINE"],
        ["demo"],
    ],
)
def test_a_root_that_is_a_file_is_8(ask: Ask, of_lake: OfLake, arguments: list[str]) -> None:
    Path("file").touch()
    typed = [of_lake[0] if word == "PIPELINE" else word for word in arguments]
    code, _, err = ask(*typed, "--root", "file")
    assert code == 8
    assert err.startswith(f"{Path('file').absolute()} is a file")


def test_the_first_cause_counts_and_a_fault_of_ours_is_none() -> None:
    error = ValueError("while ending")
    error.__context__ = of(errno.ENOSPC)
    error.__context__.__context__ = error
    assert machine_fault(error) is not None
    assert machine_fault(KeyError("x")) is None
    assert machine_fault(of(errno.ENOENT)) is None


def test_the_remedy_is_that_of_the_cause() -> None:
    for number, remedy in ((errno.EMFILE, "ulimit"), (errno.EIO, "disk"), (errno.ENOMEM, "memory")):
        found = machine_fault(of(number))
        assert found is not None
        assert remedy in found.remedy


class OfADeadJvmError(Exception):
    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_an_error_that_cannot_say_anything_is_still_told(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OfADeadJvmError

    assert machine_fault(OfADeadJvmError()) is None
    monkeypatch.setattr(declaration, "load", fail)
    code, _, err = ask("plan", "auctions")
    assert code == 70
    assert err.startswith("OfADeadJvmError")


def test_a_full_disk_is_8_and_its_details_are_elsewhere(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise of(errno.ENOSPC)

    monkeypatch.setattr(declaration, "load", fail)
    monkeypatch.setattr(log_file, "_current", Path("/dev/full"))
    code, _, err = ask("plan", "auctions")
    assert code == 8
    assert err.startswith("the disk is full")
    details = err.splitlines()[-1].removeprefix("details: ")
    assert "Traceback" in Path(details).read_text()


def test_where_nothing_can_be_written_the_traceback_is_shown(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(declaration, "load", fail)
    monkeypatch.setattr(log_file, "_fallbacks", lambda: iter([Path("/dev/full")]))
    code, _, err = ask("plan", "auctions")
    assert code == 70
    assert "Traceback" in err
