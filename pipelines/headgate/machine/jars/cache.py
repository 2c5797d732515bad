"""The local folder that holds the fetched jars, and proof that they are the pinned ones."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from headgate.commands import shell_command
from headgate.errors import HeadgateError
from headgate.machine.jars.lock import Jar, LockSet, locked

# Records which files were already hashed: a start then makes one stat call per jar, and does not
# read megabytes.
_VERIFIED = "verified.json"

MISSING = "missing"
REMEDY = f"Fetch the jars: {shell_command('doctor', '--fetch-jars')}   (in a clone: make jars)"


def cache_folder() -> Path:
    """``$HEADGATE_JARS``, else ``~/.cache/headgate/jars``. Raises HeadgateError without a home."""
    chosen = os.environ.get("HEADGATE_JARS")
    if chosen:
        return Path(chosen).expanduser().absolute()
    try:
        return Path.home() / ".cache" / "headgate" / "jars"
    except RuntimeError as error:
        raise HeadgateError(
            "This user has no home folder, where the jars would be.",
            "Name another folder: export HEADGATE_JARS=<folder>",
        ) from error


def cached_jars(lock: LockSet = LockSet.SPARK) -> tuple[Path, ...]:
    """The jars of a lock as local files, in its order. Never touches the network.

    A jar is hashed once, and again only if its size or modification time changes.
    Raises HeadgateError when a jar is missing or is not the pinned one.
    """
    folder = cache_folder()
    wrong = problems(folder, locked(lock))
    if wrong:
        listed = "\n".join(f"  {name}: {problem}" for name, problem in wrong.items())
        raise HeadgateError(f"The jars in {folder} are not complete:\n{listed}", REMEDY)
    return tuple(folder / jar.file_name for jar in locked(lock))


def problems(folder: Path, jars: tuple[Jar, ...]) -> Mapping[str, str]:
    """What is wrong with each jar of ``jars`` in ``folder``; empty when all are as pinned."""
    known = _read_verified(folder)
    stamps = {jar.file_name: _stamp(folder / jar.file_name, jar) for jar in jars}
    wrong: dict[str, str] = {}
    for jar in jars:
        stamp = stamps[jar.file_name]
        if stamp is None:
            wrong[jar.file_name] = MISSING
        elif known.get(jar.file_name) != stamp and not matches(folder / jar.file_name, jar):
            wrong[jar.file_name] = "damaged: its size or sha256 differs from the lock"
    good = {name: stamp for name, stamp in stamps.items() if stamp and name not in wrong}
    if any(known.get(name) != stamp for name, stamp in good.items()):
        _write_verified(folder, {**known, **good})
    return wrong


def matches(path: Path, jar: Jar) -> bool:
    """Reads the whole file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size == jar.size and digest == jar.sha256


def _stamp(path: Path, jar: Jar) -> str | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return f"{stat.st_size} {stat.st_mtime_ns} {jar.sha256}"


def _read_verified(folder: Path) -> dict[str, str]:
    try:
        content = json.loads((folder / _VERIFIED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_verified(folder: Path, stamps: Mapping[str, str]) -> None:
    # A read-only cache is fine: the jars are then hashed at every start.
    with suppress(OSError):
        draft = folder / f".{_VERIFIED}.{os.getpid()}"
        draft.write_text(json.dumps(stamps, indent=1), encoding="utf-8")
        draft.replace(folder / _VERIFIED)
