"""Commands to type, in texts of layers that know neither what was typed nor where.

Whoever writes a text marks a command in it (:func:`pipeline_command`, :func:`shell_command`).
Whoever shows a text renders it (:func:`rendered`): with the program as it is called there, the
pipeline as the user has to name it, and ``--root`` where it is needed.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

PIPELINE = "PIPELINE"
NEW_ROOT = "ANOTHER_FOLDER"
"""Stands for a folder beside the root, with nothing in it."""
ROOT = "--root=ROOT"
"""Of a command that is about no pipeline, and about the root."""

_BEGIN, _END = "⟦", "⟧"
_MARKED = re.compile(f"{_BEGIN}headgate ([^{_END}]*){_END}")


def pipeline_command(verb: str, *arguments: str) -> str:
    """A marked command about the pipeline that the text is about."""
    return shell_command(verb, PIPELINE, *arguments)


def shell_command(verb: str, *arguments: str) -> str:
    """A marked command about no pipeline, or about one that ``arguments`` name."""
    return f"{_BEGIN}headgate {shlex.join([*verb.split(), *arguments])}{_END}"


SEE_DAMAGE = pipeline_command("repair", "--dry-run")


@dataclass(frozen=True)
class Place:
    """Where a command will be typed. ``program`` is quoted as a shell wants it; ``root`` is that of
    the pipeline; ``root_is_known`` says that the shell has the same without being told."""

    program: str = "headgate"
    pipeline: str = PIPELINE
    root: str = ""
    root_is_known: bool = False

    def line(self, words: Sequence[str]) -> str:
        """The command line that a person types here."""
        words = [f"{self.root}-new" if w == NEW_ROOT and self.root else w for w in words]
        under = ["--root", self.root] if self.root and not self.root_is_known else []
        if "--root" in words:
            under = []
        for stands, replacement in ((PIPELINE, [self.pipeline, *under]), (ROOT, under)):
            if stands in words:
                place = words.index(stands)
                words[place : place + 1] = replacement
        return f"{self.program} {shlex.join(words)}"


def anywhere(file: Path, root: str) -> Place:
    """For a shell of this machine of which neither PATH nor folder is known: everything is said."""
    return Place(program(anywhere=True), str(file.absolute()), root)


_here = Place()


def set_place(place: Place) -> None:
    """From now on, texts of this process are shown for ``place``."""
    global _here
    _here = place


def set_subject(
    pipeline: str | None = None, root: str | None = None, *, known: bool = False
) -> None:
    """From now on, texts of this process are about ``pipeline``, or under ``root``."""
    place = _here if pipeline is None else replace(_here, pipeline=pipeline)
    set_place(place if root is None else replace(place, root=root, root_is_known=known))


def commands_in(text: str, place: Place) -> tuple[str, ...]:
    """The commands of a text, as they stand in it once it is rendered."""
    return tuple(place.line(shlex.split(found)) for found in _MARKED.findall(text))


def rendered(text: str, place: Place | None = None) -> str:
    """A text with its commands as they are typed at ``place``; where this process speaks from if
    left out."""
    at = place or _here
    return _MARKED.sub(lambda found: at.line(shlex.split(found[1])), text)


def program(*, anywhere: bool = False) -> str:
    """How a person calls this program again: by its name where the PATH leads to this very
    installation, else by its path, or by its interpreter where it has none. ``anywhere``: from a
    shell of which neither PATH nor folder is known."""
    called, beside = Path(sys.argv[0]), Path(sys.executable).parent / "headgate"
    script = called if called.name == "headgate" and called.is_file() else beside
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m headgate.cli"
    script, folder = script.absolute(), Path.cwd()
    found = None if anywhere else shutil.which("headgate")
    if found is not None and _are_same(Path(found), script):
        return "headgate"
    is_here = not anywhere and script.is_relative_to(folder)
    return shlex.quote(str(script.relative_to(folder) if is_here else script))


def _are_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
