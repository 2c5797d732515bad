"""Commands in messages.

A message is written by code that does not know how the user calls the program. Such code marks
each command in its text (:func:`pipeline_command`, :func:`shell_command`). Code that shows the text
renders it (:func:`rendered`): with the program as the user calls it, the pipeline as the user names
it, and ``--root`` where it is needed.

Texts are stored and rendered by other processes, so a marker cannot have a secret: a match is a
marker only if it is written exactly as :func:`shell_command` writes a verb of Headgate, and all
else is left as it is. JSON answers hold data beside messages, so only the code that puts a message
into an answer renders it, never the code that prints the answer.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

PIPELINE = "PIPELINE"
NEW_ROOT = "ANOTHER_FOLDER"
"""Stands for an empty folder beside the root."""
_ROOT = "--root=ROOT"
"""Stands for ``--root`` in a command that needs the root but no pipeline."""
_PLACES = (PIPELINE, "--root", "--servers")
"""A command with one of these needs no ``--root`` in addition."""

_BEGIN, _END = "⟦", "⟧"
_VERB = (  # the first word of a command
    "run|start|stop|restart|upgrade|pause|resume|status|logs|repair|list|plan|ledger|metrics|query|"
    "dashboard|versions|expectations|compact|vacuum|demo|up|down|doctor|init|savepoint|gate|"
    "quarantine|late|load|backfill|publication|quality|files|kafka"
)
_WORD = r"""(?:[\w@%+=:,./-]+|'[^']*'(?:"'"'[^']*')*)"""  # as `shlex.quote` writes it
_MARKED = re.compile(f"{_BEGIN}headgate ((?:{_VERB})(?: {_WORD})*){_END}", re.ASCII)


def pipeline_command(verb: str, *arguments: str) -> str:
    """A marked command for the pipeline of the text."""
    return shell_command(verb, PIPELINE, *arguments)


def shell_command(verb: str, *arguments: str, rooted: bool = True) -> str:
    """A marked command without a pipeline, or for one that ``arguments`` name. ``rooted`` is False
    for a verb that has no ``--root``."""
    is_placed = not {*_PLACES}.isdisjoint(arguments)
    at = [_ROOT] if rooted and not is_placed else []
    return f"{_BEGIN}headgate {shlex.join([*verb.split(), *arguments, *at])}{_END}"


SEE_DAMAGE = pipeline_command("repair", "--dry-run")
INSTALL_AGAIN = (
    "Install Headgate again; in a clone: rm -f .venv/.synced; make sync   (elsewhere: its wheel, "
    "with the versions of its pylock.toml)"
)
"""Headgate is not in a package index, so it cannot be installed by the name of a package."""


def install_extra(name: str) -> str:
    """The command that adds an extra to the environment of this process: with pip if the
    environment has it, else with uv, as in environments that uv has created."""
    python = shlex.quote(sys.executable)
    if find_spec("pip") is not None:
        return f'{python} -m pip install "headgate[{name}]"'
    return f'uv pip install "headgate[{name}]" --python {python}'


@dataclass(frozen=True)
class Place:
    """Where a command will be typed. ``program`` is quoted for the shell. ``root`` is that of the
    pipeline; ``root_is_known`` means that it is the default root in that shell."""

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
        for stands, replacement in ((PIPELINE, [self.pipeline, *under]), (_ROOT, under)):
            if stands in words:
                place = words.index(stands)
                words[place : place + 1] = replacement
        return f"{self.program} {shlex.join(words)}"


def anywhere(file: Path, root: str) -> Place:
    """A place for any shell of this machine, whatever its PATH and folder: all paths are
    absolute."""
    return Place(program(anywhere=True), str(file.absolute()), root)


_here = Place()


def set_place(place: Place) -> None:
    """Set the place for which this process renders commands."""
    global _here
    _here = place


def set_subject(
    pipeline: str | None = None, root: str | None = None, *, known: bool = False
) -> None:
    """Set the pipeline or the root in the commands that this process renders."""
    place = _here if pipeline is None else replace(_here, pipeline=pipeline)
    set_place(place if root is None else replace(place, root=root, root_is_known=known))


def commands_in(text: str, place: Place | None = None) -> tuple[str, ...]:
    """The commands of a text, as they appear in the text that is rendered for the same place."""
    at = place or _here
    return tuple(at.line(shlex.split(found)) for found in _MARKED.findall(text))


def rendered(text: str, place: Place | None = None) -> str:
    """A text with its commands as they are typed at ``place``; by default the place of this
    process."""
    at = place or _here
    return _MARKED.sub(lambda found: at.line(shlex.split(found[1])), text)


def program(*, anywhere: bool = False) -> str:
    """The command that starts this program: its name if the PATH leads to this installation, else
    its path, or its interpreter if it has no script. ``anywhere``: for a shell whose PATH and
    folder are not known."""
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
