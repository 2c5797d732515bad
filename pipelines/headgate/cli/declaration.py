"""Finds and loads the declaration that the argument PIPELINE names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.cli.hidden import hide
from headgate.commands import set_subject, shell_command
from headgate.declaration.files import SUFFIXES, declarations_in
from headgate.declaration.nearest import nearest
from headgate.errors import UsageError
from headgate.storage.layout import Layout
from headgate.storage.places import at_home

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline

_PACKAGE = Path(__file__).resolve().parents[1]


def find(pipeline: str) -> Path:
    """The file that ``pipeline`` names: by its path, or as NAME of NAME.yml in pipelines/, in the
    current folder or in the examples. Raises UsageError, which suggests the nearest name."""
    if not pipeline:
        raise UsageError(
            "the name of the pipeline is empty",
            remedy=f"see the names: {shell_command('list')}",
        )
    set_subject(pipeline)
    path = at_home(pipeline)
    is_path = "/" in pipeline or path.parent != Path() or path == Path()
    if path.suffix in SUFFIXES or is_path:
        if not path.is_file():
            problem = "there is no such file"
            if path.exists():
                problem = "is a folder" if path.is_dir() else "is not a regular file"
            raise UsageError(f"{path}: {problem}", remedy=shell_command("list"))
        return path
    known = {found.stem: found for found in reversed(tuple(declarations()))}
    if pipeline not in known:
        near = nearest(pipeline, known)
        hint = f' (did you mean "{near}"?)' if near else ""
        raise UsageError(
            f"there is no pipeline {pipeline}{hint}: looked for pipelines/{pipeline}.yml, "
            f"{pipeline}.yml and an example of that name",
            remedy=f"{shell_command('list')}, or name the declaration's file",
        )
    return known[pipeline]


def declarations() -> Iterator[Path]:
    """Every declaration that can be found by name. Of several with the same name, the first
    counts."""
    for folder in (Path("pipelines"), Path(), Path("pipelines/examples"), *_shipped()):
        yield from declarations_in(folder)


def example(name: str) -> Path:
    """A declaration that ships with Headgate."""
    return next(p for f in _shipped() if (p := f / f"{name}.yml").is_file())


def _shipped() -> tuple[Path, ...]:
    """The folders of examples in an installed wheel and in a clone."""
    return (_PACKAGE / "examples", _PACKAGE.parent / "examples")


def opened(pipeline: str, root: str, *, needs_secrets: bool = True) -> tuple[Pipeline, Layout]:
    """The declaration and the layout of its tables. Raises as :func:`load` does."""
    declared = load(pipeline, needs_secrets=needs_secrets)
    return declared, Layout.of(root, declared.name)


def load(
    pipeline: str, *, kept: tuple[str, str] | None = None, needs_secrets: bool = True
) -> Pipeline:
    """The declaration. With ``kept`` (a root and a digest), the text that was deployed there is
    loaded instead of the file. ``needs_secrets`` is False for a verb that only reads tables or
    sends a request to a driver. Its secrets are hidden from then on. Raises UsageError,
    DeclarationError or SavepointError."""
    from headgate.declaration.load import load as load_file
    from headgate.declaration.secrets import secrets_of

    file = find(pipeline)
    if kept is None:
        declared = load_file(file, needs_secrets=needs_secrets)
    else:
        from headgate.savepoints.declarations import kept as load_kept

        root, digest = kept
        layout = Layout.of(root, load_file(file).name)
        declared = load_kept(layout, digest, beside=file, needs_secrets=needs_secrets)
    hide(secrets_of(declared))
    return declared
