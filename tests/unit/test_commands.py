"""Every command that Headgate prints can be typed: verb, options and arguments are those of the
command line, and nothing prints a command that was not checked here."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from headgate import commands
from headgate.cli.verbs import VERBS, command_of
from headgate.commands import (
    NEW_ROOT,
    PIPELINE,
    Place,
    commands_in,
    pipeline_command,
    rendered,
    shell_command,
)
from headgate.errors import HeadgateError

PACKAGE = Path(commands.__file__).parent
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
OF_VERBS = cache(command_of)
WRITERS = ("pipeline_command", "shell_command", "command", "command_at")
UNDECIDED = "1"  # stands for a value that is known only at run time: a name, a number or a path

HELP = ("metavar", "help")
OF_USERS = (
    "exit_codes.py",  # the table of `--help`
    "cli/verbs.py",  # first sentences of `--help`
)


def sources(pattern: str = "") -> Iterator[tuple[str, ast.Module]]:
    """The modules whose text matches. Only these are parsed, because parsing all takes long."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if "templates" not in file.parts and re.search(pattern, text := file.read_text()):
            yield str(file.relative_to(PACKAGE)), ast.parse(text)


def values(node: ast.expr) -> tuple[list[str], ...]:
    """The words that an argument may become: one word, or those of a list that may be absent."""
    match node:
        case ast.Constant(value=str(text)):
            return ([text],)
        case ast.Name(id="NEW_ROOT"):
            return ([NEW_ROOT],)
        case ast.IfExp(body=body, orelse=other):
            return (*values(body), *values(other))
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            each = itertools.product(*map(values, elements))
            return tuple(list(itertools.chain(*words)) for words in each)
        case ast.BinOp(left=ast.List() as left, op=ast.Mult()):
            return ([], *values(left))
        case ast.Starred(value=ast.Name()):
            return ([],)  # decided elsewhere; left out here
        case ast.Starred(value=value):
            return values(value)
    return ([UNDECIDED],)


def printed() -> Iterator[tuple[str, str, list[str], bool]]:
    """Every command that the package writes, in each of its forms: its place, verb and words, and
    whether it must have ``--root``."""
    for file, tree in sources(rf"\b({'|'.join(WRITERS)})\("):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in WRITERS:
                continue
            verb, *rest = node.args
            if node.func.id == "command_at":  # (verb, pipeline, root, …)
                rest = rest[2:]
            if file in ("cli/options.py", "commands.py") and not isinstance(verb, ast.Constant):
                continue
            head = [] if node.func.id == "shell_command" else [PIPELINE]
            forms = itertools.product(values(verb), *map(values, rest))
            for (verbs, *words), _ in zip(forms, range(64), strict=False):
                at = f"{file}:{node.lineno}"
                yield at, verbs[0], [*head, *itertools.chain(*words)], not node.keywords


COMMANDS = sorted({(at, verb, tuple(words), rooted) for at, verb, words, rooted in printed()})


def parse(words: list[str]) -> frozenset[str]:
    """The options of the command. Raises click's UsageError if the words are not a valid command
    line; runs nothing."""
    name, *words = words
    if name not in VERBS:
        raise UsageError(f"no command {name}")
    command = OF_VERBS(name)
    while hasattr(command, "commands"):  # savepoint, files, kafka
        name, *words = words
        if name not in command.commands:
            raise UsageError(f"no command {name}")
        command = command.commands[name]
    command.make_context("headgate", list(words))
    return frozenset(option for each in command.params for option in each.opts)


@pytest.mark.parametrize(("at", "verb", "words", "rooted"), COMMANDS)
def test_a_printed_command_is_one(at: str, verb: str, words: tuple[str, ...], rooted: bool) -> None:
    assert verb != UNDECIDED, f"{at}: a verb that nobody can check"
    place = Place(pipeline="my shop.yml", root="/a root")
    said = rendered(shell_command(verb, *words, rooted=rooted), place)
    program, *typed = shlex.split(said)
    assert program == "headgate"
    options = parse(typed)
    assert rooted == ("--root" in options)
    assert ("--root" in typed) == (rooted and "--servers" not in typed)
    if PIPELINE in words:
        assert "my shop.yml" in typed


def test_a_usage_has_no_brackets_twice() -> None:
    groups = [OF_VERBS(name) for name in VERBS]
    verbs = [v for g in groups for v in (*getattr(g, "commands", {}).values(), g)]
    usages = [verb.get_usage(verb.make_context("x", [], resilient_parsing=True)) for verb in verbs]
    assert not [usage for usage in usages if "[[" in usage]


def test_the_scan_finds_them() -> None:
    verbs = {verb for _, verb, *_ in COMMANDS}
    assert len(COMMANDS) > 60
    assert {"start", "files skip", "savepoint restore", "kafka topics", "repair"} <= verbs


@pytest.mark.slow
def test_a_command_is_never_written_by_hand() -> None:
    """Except in docstrings, in help, and in pages of documentation."""
    by_hand = re.compile(rf"(?<!in )headgate ({'|'.join(VERBS)})\b|\bPIPELINE\b")
    found = []
    for file, tree in sources():
        if file in (*OF_USERS, "commands.py"):
            continue
        nodes = list(ast.walk(tree))
        of_users = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
        of_users |= {id(n.value) for n in nodes if isinstance(n, ast.keyword) and n.arg in HELP}
        found += [
            f"{file}:{node.lineno}: {node.value}"
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in of_users
            and by_hand.search(node.value)
        ]
    assert found == []


def test_a_wrong_command_would_be_seen() -> None:
    for wrong in (["stat", "a"], ["files", "skip", "a", "b"], ["start"], ["logs", "a", "--what"]):
        with pytest.raises(UsageError):
            parse(wrong)


def test_a_command_says_what_has_to_be_typed() -> None:
    text = f"see: {pipeline_command('savepoint restore', 's 1')}; or {shell_command('doctor')}"
    assert rendered(text, Place()) == (
        "see: headgate savepoint restore PIPELINE 's 1'; or headgate doctor"
    )
    place = Place(".venv/bin/headgate", "my shop.yml", "/a lake")
    assert rendered(text, place) == (
        "see: .venv/bin/headgate savepoint restore 'my shop.yml' --root '/a lake' 's 1'; "
        "or .venv/bin/headgate doctor --root '/a lake'"
    )


def test_a_command_of_a_document_that_another_version_stored() -> None:
    stored = "see: ⟦headgate savepoint restore PIPELINE 's '\"'\"'1'⟧; or ⟦headgate doctor⟧"
    place = Place(pipeline="shop", root="/lake")
    command = "headgate savepoint restore shop --root /lake 's '\"'\"'1'"
    assert rendered(stored, place) == f"see: {command}; or headgate doctor"
    assert commands_in(stored, place) == (command, "headgate doctor")


@pytest.mark.parametrize(
    "data",
    [
        "⟦headgate it's⟧",
        "⟦headgate '⟧",
        "⟦headgate ⟧",
        "⟦headgate",
        "⟦headgate hello PIPELINE⟧",
        "⟦headgate status  PIPELINE⟧",
        '⟦headgate status "PIPELINE"⟧',
        "⟦headgate status PIPELINE; ls⟧",
        "⟦headgate '' status⟧",
    ],
)
def test_data_is_no_command(data: str) -> None:
    command = pipeline_command("status")
    place = Place(pipeline="shop")
    assert (rendered(data, place), commands_in(data, place)) == (data, ())
    for text in (f"{data}: {command}", f"{command}: {data}"):
        assert rendered(text, place) == text.replace(command, "headgate status shop")
        assert commands_in(text, place) == ("headgate status shop",)
    assert HeadgateError(data, command).text(place) == f"{data}\nheadgate status shop"


@pytest.mark.parametrize(
    "word", ["⟦headgate 'x⟧", "⟧", "⟦", "a'b c", "", "a\nb", "$x", "⟦headgate ⟧'"]
)
def test_any_text_may_be_an_argument(word: str) -> None:
    command = shell_command("plan", word)
    typed = f"headgate plan {shlex.quote(word)} --root /lake"
    place = Place(root="/lake")
    assert rendered(f"a: {command}⟧; {command}", place) == f"a: {typed}⟧; {typed}"
    assert commands_in(command, place) == (typed,)


def test_a_command_has_a_known_verb() -> None:
    assert [*VERBS] == commands._VERB.split("|")


def test_a_root_is_named_where_the_shell_does_not_know_it() -> None:
    there = Place(pipeline="shop", root="/lake")
    known = Place(pipeline="shop", root="/lake", root_is_known=True)
    status, down = pipeline_command("status"), shell_command("kafka down")
    assert rendered(status, there) == "headgate status shop --root /lake"
    assert rendered(status, known) == "headgate status shop"
    assert rendered(down, there) == "headgate kafka down --root /lake"
    assert rendered(down, known) == "headgate kafka down"
    assert rendered(down, Place()) == "headgate kafka down"


def test_a_command_may_name_a_root_of_its_own() -> None:
    other = pipeline_command("run", "--root", NEW_ROOT)
    assert rendered(other, Place(pipeline="a", root="/lake")) == "headgate run a --root /lake-new"
    copy = pipeline_command("savepoint restore", "s1", "--to", NEW_ROOT)
    assert rendered(copy, Place(pipeline="a", root="/lake")) == (
        "headgate savepoint restore a --root /lake s1 --to /lake-new"
    )


@pytest.mark.parametrize("has_pip", [True, False])
def test_an_extra_is_added_to_the_environment_of_this_process(
    monkeypatch: pytest.MonkeyPatch, has_pip: bool
) -> None:
    monkeypatch.setattr("headgate.commands.find_spec", lambda name: object() if has_pip else None)
    monkeypatch.setattr("headgate.commands.sys.executable", "/my env/bin/python")
    by_pip = "'/my env/bin/python' -m pip install \"headgate[quality]\""
    by_uv = "uv pip install \"headgate[quality]\" --python '/my env/bin/python'"
    assert commands.install_extra("quality") == (by_pip if has_pip else by_uv)


def test_no_text_has_headgate_installed_from_an_index() -> None:
    """Headgate is in no index: the command would fail, or install another package of that name."""
    from_index = re.compile(r"pip install (--\S+ )*headgate\b")
    files = (file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".md"))
    assert not [str(f) for f in files if from_index.search(f.read_text(encoding="utf-8"))]
