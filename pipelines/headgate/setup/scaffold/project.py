"""Copies the shop template that ships with Headgate into a folder, with schemas for editors."""

from __future__ import annotations

from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.declaration.reference.schema import json_text, schema_of
from headgate.errors import HeadgateError
from headgate.insight.dashboard.boards.model import BOARD

# Editors use these schemas to complete and check the files beside them. The first line of each file
# names its schema.
_SCHEMA = Path("pipelines", "headgate.schema.json")
_BOARDS = Path("dashboards", "headgate-dashboard.schema.json")
_TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "shop"

# The template has other names for these: git would apply .gitignore there, and ignore landing.
_PLACES = {"gitignore": Path(".gitignore"), "orders": Path("landing", "orders")}


class ProjectError(HeadgateError, code=exit_codes.USAGE):
    """The project cannot be written to this folder."""


def create_project(folder: Path) -> list[Path]:
    """Write the project into ``folder`` and return its files, sorted.

    The folder may exist and hold other files. Nothing is ever overwritten: raises ProjectError,
    before the first write, if one of the files exists already.
    """
    files = {folder / _place(source): source.read_bytes() for source in _template_files()}
    files[folder / _SCHEMA] = json_text().encode()
    files[folder / _BOARDS] = json_text(schema_of(BOARD, "A Headgate dashboard")).encode()
    try:
        taken = sorted(target for target in files if target.exists())
        if taken or (folder.exists() and not folder.is_dir()):
            listed = "\n".join(f"  {path}" for path in taken or [folder])
            raise ProjectError(
                f"these files exist, and are not overwritten:\n{listed}",
                f"choose another folder: {shell_command('init', _beside(folder), rooted=False)}",
            )
        for target, content in files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise ProjectError(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            "choose a folder of yours: "
            + shell_command("init", str(Path.home() / "shop"), rooted=False),
        ) from error
    return sorted(files)


def _beside(folder: Path) -> str:
    """The path of a new folder beside this one, also if this one is given as ``.`` or ``..``."""
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return f"{named}-new"


def _template_files() -> list[Path]:
    return [
        path for path in _TEMPLATE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]


def _place(source: Path) -> Path:
    first, *rest = source.relative_to(_TEMPLATE).parts
    return _PLACES.get(first, Path(first)).joinpath(*rest)
