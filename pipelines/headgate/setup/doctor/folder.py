"""Checks of the folder for the tables. They remove what they write."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from headgate.declaration.quantities import size_text
from headgate.setup.doctor.check_result import CheckResult, failed, passed

# A demo takes a tenth of it; a full disk stops a pipeline in the middle of a batch.
_DISK = 2 * 1024**3

_OTHER_FOLDER = "Choose another folder: --root <folder>"


def disk(root: Path) -> CheckResult:
    needed = f"at least {size_text(_DISK)} free"
    free = shutil.disk_usage(_existing(root)).free
    if free < _DISK:
        return failed(
            "disk", f"{size_text(free)} free under {root}", needed, f"Free some. {_OTHER_FOLDER}"
        )
    return passed("disk", f"{size_text(free)} free under {root}", needed)


def writing(root: Path) -> CheckResult:
    needed = "a folder that may be written"
    place = _existing(root)
    if not place.is_dir():
        return failed("writing", f"{place} is a file", needed, _OTHER_FOLDER)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".headgate-doctor-"):
            pass
    except PermissionError:
        owner = f"Make it yours: sudo chown -R $USER {shlex.quote(str(place))}"
        return failed("writing", f"{place} may not be written", needed, owner)
    except OSError as error:
        return failed("writing", f"{place}: {error.strerror}", needed, _OTHER_FOLDER)
    return passed("writing", f"{place} may be written", needed)


def renaming(root: Path) -> CheckResult:
    """A commit to a local Delta log must fail if its name exists (by a hard link), and a document
    must be replaced atomically (by a rename)."""
    needed = "renames within the folder, and hard links"
    place = _existing(root)
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".headgate-doctor-") as name:
            whole = _renames(Path(name))
    except OSError as error:
        return failed("renaming", f"{place}: {error.strerror}", needed, _LOCAL_DISK)
    if not whole:
        return failed(
            "renaming", f"renames or hard links do not work in {place}", needed, _LOCAL_DISK
        )
    return passed("renaming", f"works under {place}", needed)


_LOCAL_DISK = "Use a local disk, not a share that emulates one: --root <folder>"


def _renames(folder: Path) -> bool:
    draft, final, link = folder / "draft", folder / "final", folder / "link"
    final.write_text("old")
    draft.write_text("new")
    draft.replace(final)
    os.link(final, link)
    try:
        os.link(final, link)
    except FileExistsError:
        return final.read_text() == link.read_text() == "new" and not draft.exists()
    return False


def _existing(root: Path) -> Path:
    """``root``, or the nearest folder above it that exists."""
    place = root.absolute()
    while not place.exists():
        place = place.parent
    return place
