"""``headgate dashboard``: the tables of pipelines in a browser."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, Port, Root, pipeline_names
from headgate.cli.output import respond
from headgate.commands import rendered, shell_command
from headgate.declaration.files import declarations_in, project_folder
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError, UsageError
from headgate.insight.dashboard import FOLDER, PORT
from headgate.insight.dashboard.boards.model import TableName
from headgate.insight.dashboard.boards.reading import board_files, read_board, tables_read
from headgate.insight.dashboard.boards.runner import ChartRunner
from headgate.insight.dashboard.errors import DashboardError
from headgate.insight.dashboard.login.passwords import close, made
from headgate.insight.dashboard.server.serving import DashboardSettings, checked_base, serve
from headgate.machine.loopback import is_loopback
from headgate.machine.process_tree.ports import free_port

_LOGIN = "Ask for a password. --no-login is allowed only on 127.0.0.1."


def dashboard(
    pipelines: Annotated[
        list[str],
        pipeline_names("Declarations' paths or names; all in pipelines/ if left out."),
    ],
    allow_host: Annotated[
        list[str],
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A further name that browsers call it by.",
            show_default=False,
            default_factory=list,
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    port: Port = PORT,
    base_path: Annotated[
        str, typer.Option("--base-path", metavar="PATH", help="The path behind a proxy.")
    ] = "",
    login: Annotated[bool, typer.Option("--login/--no-login", help=_LOGIN)] = True,
    new_password: Annotated[
        bool, typer.Option("--new-password", help="Make another password and print it.")
    ] = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show late and quarantined values, unmasked.")
    ] = False,
    awaits_password: Annotated[bool, typer.Option("--awaits-password", hidden=True)] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check the dashboards of these pipelines and end.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Show the tables in a browser.

    Read-only, on 127.0.0.1, with a password that is printed once. Charts of your own are in
    dashboards/*.yml.
    """
    files = [declaration.find(word) for word in pipelines] or _all()
    if check:
        _respond_checked(files, json)
        return
    base = checked_base(base_path)
    _require_login_for(host, login)
    keep = Path(root) / FOLDER if login else None
    if keep is not None:
        close(keep)
    settings = DashboardSettings(
        files, root, host, port or free_port(), base, allow_host, keep, show_values
    )
    # The stream on this machine has priority.
    os.nice(5)

    def started() -> None:
        # Not before: if the port is taken, for example, a password that was shown stays valid.
        password = None
        if keep is not None and not awaits_password:
            password = made(keep, anew=new_password)
        _respond(settings.address, password, keep, json)

    with suppress(KeyboardInterrupt):
        serve(settings, started)


def _all() -> list[Path]:
    """The declarations of the project. Raises UsageError if there is none."""
    found = [*declarations_in(Path("pipelines")), *declarations_in(Path())]
    if not found:
        raise UsageError(
            "there is no declaration in pipelines/",
            remedy=f"name one: {shell_command('dashboard', 'shop')}, of: {shell_command('list')}",
        )
    return found


def _require_login_for(host: str, login: bool) -> None:
    if not login and not is_loopback(host):
        raise DashboardError(
            f"without a login, the dashboard is served on loopback alone, not at {host}",
            remedy=f"keep the login: {shell_command('dashboard', '--host', host)}",
        )


def _respond(address: str, password: str | None, keep: Path | None, json: bool) -> None:
    another = rendered(shell_command("dashboard", "--new-password"))
    shown = f"{password}   (shown this once)" if password else f"as shown before; new: {another}"
    lines = [f"dashboard  {address}"]
    lines += ["login      none"] if keep is None else [f"password   {shown}"]
    respond(
        json,
        {"address": address, "password": password, "login": keep is not None},
        *lines,
        "to end it  Ctrl-C",
    )


def _respond_checked(files: list[Path], json: bool) -> None:
    """Check the dashboards of these pipelines. Raises BoardError for the first file with
    problems."""
    wanted = {each.name: each for each in (load(file, needs_secrets=False) for file in files)}
    projects = dict.fromkeys(project_folder(file) for file in files)
    others = {n: p for project in projects for n, p in _beside(project) if n not in wanted}
    declared = wanted | {name: other for name, other in others.items() if other is not None}
    runner = ChartRunner()
    try:
        found = [file for project in projects for file in board_files(project)]
        found = [file for file in found if not _is_of_others(file, wanted, others)]
        boards = [read_board(file, declared, runner.bind) for file in found]
    finally:
        runner.close()
    names = [board.name for board in boards]
    said = f"no mistake in: {', '.join(names)}" if names else "no dashboards"
    respond(json, {"dashboards": names}, said)


def _beside(project: Path) -> Iterator[tuple[str, Pipeline | None]]:
    """All pipelines of a project, by name. None for a declaration that cannot be read, which has
    the name of its file."""
    for file in declarations_in(project / "pipelines"):
        try:
            declared = load(file, needs_secrets=False)
        except HeadgateError:
            yield file.stem, None
        else:
            yield declared.name, declared


def _is_of_others(
    board: Path, wanted: Mapping[str, Pipeline], others: Mapping[str, Pipeline | None]
) -> bool:
    """Whether a dashboard reads only tables of other pipelines than those wanted."""

    def is_other(table: TableName) -> bool:
        if table.pipeline is not None:
            return table.pipeline in others
        having = [other for other in others.values() if other and table.table in other.gold]
        return bool(having) and not any(table.table in each.gold for each in wanted.values())

    tables = tables_read(board)
    return bool(tables) and all(map(is_other, tables))
