"""Finds and loads the declaration that the argument PIPELINE names, and finds what another argument
names in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headgate.cli.hidden import hide
from headgate.commands import set_subject, shell_command
from headgate.declaration.files import SUFFIXES, declarations_in
from headgate.declaration.kinds import GOLD
from headgate.declaration.names import did_you_mean
from headgate.errors import UsageError
from headgate.lake.storage.layout import Layout
from headgate.lake.storage.places import at_home

if TYPE_CHECKING:
    from headgate.declaration.model import GoldTable, Pipeline


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
        hint = did_you_mean(pipeline, known)
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
        from headgate.history.savepoints.declarations import kept_declaration as load_kept

        root, digest = kept
        layout = Layout.of(root, load_file(file).name)
        declared = load_kept(layout, digest, beside=file, needs_secrets=needs_secrets)
    hide(secrets_of(declared))
    return declared


T = TypeVar("T")


def named(known: Mapping[str, T], word: str, what: str, hint: str = "") -> T:
    """What ``word`` names. Otherwise raises UsageError: ``what``, which is such as "shop has no
    publication", the word, the nearest name, all names, and a further ``hint``."""
    if word not in known:
        meant = did_you_mean(word, known)
        names = ", ".join(known) or "none"
        raise UsageError(f"{what} {word!r}{meant}", remedy=f"there are: {names}{hint}")
    return known[word]


def table_with_late_rows(declared: Pipeline, word: str) -> GoldTable:
    """As ``gold_table``, of one that has a late table. Raises UsageError."""
    table = gold_table(declared, word)
    if table.reads is not None:
        raise UsageError(
            f"gold.{table.name} reads gold.{table.reads}, so it has no late rows of its own",
            remedy=f"name that table: gold.{table.reads}; its corrections reach gold.{table.name}",
        )
    return table


def gold_table(declared: Pipeline, word: str, *, gated: bool = False) -> GoldTable:
    """The gold table of this name, with or without its layer; with ``gated``, only one that has
    expectations. Raises UsageError."""
    known = {
        f"gold.{name}": t for name, t in declared.gold.items() if t.suite is not None or not gated
    }
    name = word.removeprefix(f"{GOLD.name}.").removeprefix(GOLD.path(""))
    kind = "gold table with expectations named" if gated else "gold table"
    return named(known, f"gold.{name}", f"{declared.name} has no {kind}")
