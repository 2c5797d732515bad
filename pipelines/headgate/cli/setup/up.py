"""``headgate up | down``: a local Airflow, with the demo's stream or the user's DAGs."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from headgate.cli.declaration import example
from headgate.cli.driving import on_signals, require_java
from headgate.cli.options import DEFAULT_ROOT, Json, Port, Root, command_at
from headgate.cli.output import respond
from headgate.cli.screen import waiting
from headgate.commands import rendered, shell_command
from headgate.declaration.files import declarations_in
from headgate.declaration.kinds import GOLD
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table
from headgate.machine.process_tree import presence
from headgate.setup.standalone import demo as project
from headgate.setup.standalone import running
from headgate.setup.standalone.dashboard import Beside, beside
from headgate.setup.standalone.running import Standalone
from headgate.setup.standalone.settings import (
    ADMIN,
    DATABASE,
    WEB,
    AirflowSettings,
    AskedWrongError,
    web_port,
)

FOLDER = "_airflow"  # under the root; no pipeline's name begins with _
_DEMO = "demo"
_POLL_EVERY = 0.5  # seconds


def up(
    dags: Annotated[
        Path | None,
        typer.Option(
            "--dags", help="Your own DAGs folder; the demo's, with its stream on, if left out."
        ),
    ] = None,
    port: Port = WEB,
    detached: Annotated[
        bool, typer.Option("--detached", help="Leave it running: `down` ends it.")
    ] = False,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Run Airflow on this machine, until Ctrl-C.

    With the demo's stream, or your own DAGs; on 127.0.0.1. When this process ends, all
    others end. The database is SQLite, or the PostgreSQL that HEADGATE_AIRFLOW_DB names.
    """
    home = home_under(root)
    running.require_airflow()
    require_java()
    demo = None if dags else home / _DEMO
    running.require_no_other(home)  # it may have the port
    web = web_port(port, _again(dags, 0, detached))
    settings = _settings(home, dags, demo, root, web)
    with on_signals() as asked:
        if demo is not None and not detached and not json:
            Thread(target=_print_first_gold, args=(demo, asked), daemon=True).start()
        with waiting("starting Airflow") as say:
            more = project.children(demo) if demo else {}
            board = _dashboard(demo, root, any_port=port == 0)
            if board is not None:
                more["dashboard"] = board.child
            started = running.start(settings, more, detached=detached, say=say)
            try:
                password = board.password() if board is not None else None
            except BaseException:
                started.tree.end()
                if started.password is not None:  # nobody has seen it
                    settings.passwords.unlink(missing_ok=True)
                raise
        try:
            again = _again(dags, port, detached)
            _respond(started, demo, board, password, json, detached, again)
            if not detached:
                while started.tree.code is None and not asked:
                    time.sleep(_POLL_EVERY)
                if started.tree.code and not asked:  # it is 0 after `headgate down`
                    raise started.failure(again)
        finally:
            if not detached:
                started.tree.end()


def down(root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """End the Airflow that `up` started.

    The streams that it started end, too, each after its batch.
    """
    home = home_under(root)
    with waiting("ending Airflow and the streams that it started"):
        ended = presence.end(home) is not None
    message = f"the Airflow in {home} has ended" if ended else f"no Airflow runs in {home}"
    respond(json, {"stopped": ended}, message)


def _again(dags: Path | None, port: int, detached: bool) -> str:
    own = ["--dags", str(dags)] if dags else []
    at = [] if port == WEB else ["--port", str(port)]
    return shell_command("up", *own, *at, *(["--detached"] if detached else []))


def home_under(root: str) -> Path:
    return Path(root) / FOLDER


def _settings(
    home: Path, dags: Path | None, demo: Path | None, root: str, port: int
) -> AirflowSettings:
    database = os.environ.get(DATABASE) or None
    if database is not None and not database.startswith(("postgres://", "postgresql")):
        raise AskedWrongError(
            f"{DATABASE} is not a PostgreSQL address",
            f"type: export {DATABASE}=postgresql://USER:PASSWORD@HOST/DATABASE, or, to use SQLite: "
            f"unset {DATABASE}",
        )
    if demo is not None:
        home.mkdir(parents=True, exist_ok=True)
        project.made(demo, example(project.PIPELINE))
        return AirflowSettings(home, demo / "dags", demo, None, port, database, switched_on=True)
    assert dags is not None
    if not dags.is_dir():
        raise AskedWrongError(
            f"{dags} is not a folder",
            f"name a folder of DAGs: {shell_command('up', '--dags', 'dags')}",
        )
    return AirflowSettings(home, dags.absolute(), Path.cwd(), root, port, database)


def _dashboard(demo: Path | None, root: str, *, any_port: bool) -> Beside | None:
    """The dashboard of the demo's pipeline, or of those in ``pipelines/``; None if there are
    none."""
    files = declarations_in((demo or Path()).absolute() / "pipelines")
    tables = demo / "lake" if demo else Path(root)
    return beside(files, tables, any_port=any_port) if files else None


def _respond(
    started: Standalone,
    demo: Path | None,
    board: Beside | None,
    also: str | None,
    json: bool,
    detached: bool,
    again: str,
) -> None:
    """``also`` is the password of ``board``, if it is new."""
    settings, password = started.settings, started.password
    down = rendered(shell_command("down"))
    login = [f"password   {_shown(password)}; kept in {settings.passwords}"]
    if password is None:
        remove = shlex.join(["rm", str(settings.passwords)])
        login.append(f"           another one: {down} && {remove} && {rendered(again)}")
    streams = [
        "new DAGs   headgate__health, headgate__maintenance and every NAME__control begin on",
        "           every NAME__stream, NAME__gold and NAME__backfill begins off: switch it on",
    ]
    if demo is not None:
        streams = [
            "stream     auctions, fed with bids for as long as this runs",
            f"           {command_at('status', f'{demo}/pipelines/auctions.yml', f'{demo}/lake')}",
            rendered(f"your own   {shell_command('up', '--dags', 'dags')}"),
        ]
    if board is not None:
        own = [f"dashboard  {board.address}", f"password   {_shown(also)}"]
        if also is None:
            own.append(f"           another one: {_new_password(demo)}")
        streams = [*own, *streams]
    document: dict[str, Any] = {
        "address": settings.address,
        "user": ADMIN,
        "passwords": str(settings.passwords),
        "dashboard": board and {"address": board.address, "password": also},
    }
    respond(
        json,
        document | {"pid": started.tree.pid, "password": password},
        f"Airflow    {settings.address}",
        f"user       {ADMIN}",
        *login,
        *streams,
        f"to end it  {'' if detached else 'Ctrl-C, or '}{down}",
    )


def _shown(password: str | None) -> str:
    return f"{password}   (shown this once)" if password else "as it was shown"


def _new_password(demo: Path | None) -> str:
    """The command that makes another password of the dashboard, which is valid at once. It serves
    one itself, so it needs another port."""
    if demo is None:
        return rendered(shell_command("dashboard", "--new-password", "--port", "0"))
    file, tables = f"{demo}/pipelines/{project.PIPELINE}.yml", f"{demo}/lake"
    return command_at("dashboard", file, tables, "--new-password", "--port", "0")


def _print_first_gold(demo: Path, asked: Sequence[int]) -> None:
    """Print when gold of a new demo has its first row, which may be before Airflow answers."""
    began, was_new = time.monotonic(), not _has_gold(demo)
    while was_new and not asked:
        time.sleep(_POLL_EVERY)
        if _has_gold(demo):
            print(f"the first gold row came after {time.monotonic() - began:.0f} s", flush=True)
            return


def _has_gold(demo: Path) -> bool:
    layout = Layout.of(str(demo / "lake"), project.PIPELINE)
    gold = Table(layout.storage, GOLD.path("bids_per_minute"), pipeline=project.PIPELINE)
    return gold.exists and bool(gold.refresh().total.get("folded"))
