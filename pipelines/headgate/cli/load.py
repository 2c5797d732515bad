"""``headgate load``: history beside the live stream."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from headgate.cli import declaration, log_file
from headgate.cli.driving import drive, driver_of_requests, jars_for, require_machine
from headgate.cli.load_following import follow, hindrance, progress_in_words, require_done
from headgate.cli.options import (
    DEFAULT_ROOT,
    Json,
    Note,
    PipelineName,
    Root,
    SourceName,
    command,
    time_option,
    time_range,
)
from headgate.cli.output import grid, respond
from headgate.cli.requesting import person
from headgate.cli.screen import waiting
from headgate.cli.sources import SourceLabels, the_source
from headgate.cli.undone import LeftError, load_states
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import plural
from headgate.driver.lease import LeaseHeldError, TablesInUseError
from headgate.errors import HeadgateError, UsageError
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.loading import LoadWanted
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest, LoadState, load_folder, load_state
from headgate.lake.control.requests import send_request
from headgate.lake.storage.documents import new_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import LOAD, LOAD_CHANGE
from headgate.lake.tables.table import Table

_WISHES = {"--pause": "paused", "--resume": "open", "--cancel": "cancelled"}
DEFAULT_SHARE = 0.5


def load(
    pipeline: PipelineName,
    files: Annotated[
        str | None,
        typer.Option(
            "--files",
            metavar="PATTERN",
            help="Files, a folder, or a quoted pattern such as 'archive/2025/**'.",
        ),
    ] = None,
    kafka: Annotated[
        list[str] | None,
        typer.Option(
            "--kafka",
            metavar="RANGE",
            help="A topic, topic/partition, or topic/partition:FIRST-END. May be repeated.",
        ),
    ] = None,
    source: SourceName = None,
    begin: Annotated[
        str | None,
        time_option("--from", "Only what was written from then on. UTC."),
    ] = None,
    end: Annotated[
        str | None,
        time_option("--to", "Only what was written before then."),
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            "--share",
            min=0.01,
            max=1.0,
            help="The share of the driver's time that the load may use while the stream has input.",
        ),
    ] = DEFAULT_SHARE,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="At most so many records a second.")
    ] = None,
    note: Note = "",
    pause: Annotated[bool, typer.Option("--pause", help="Hold a load for a while.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a load, and follow it.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="End a load; what it has read stays.")
    ] = False,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The load meant, if several are open.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Follow the load to its end.")
    ] = True,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Load history beside the live stream, and fold its late rows.

    Without options: shows the loads of a pipeline.
    """
    if files is not None and not files.strip():
        said = "it must name files, a folder, or a pattern"
        raise typer.BadParameter(said, param_hint="--files")
    asked = zip(_WISHES, (pause, resume, cancel), strict=True)
    wishes = [name for name, is_asked in asked if is_asked]
    named = [*([files] if files else []), *(kafka or ())]
    drives = bool(named) or resume
    declared, layout = declaration.opened(pipeline, root, needs_secrets=drives)
    if len(wishes) + bool(named) > 1:
        raise typer.BadParameter("begin a load, or one of --pause, --resume, --cancel")
    told: dict[str, object] = {"--from": begin, "--to": end, "--source": source, "--rate": rate}
    told |= {"--note": note or None, "--share": None if share == DEFAULT_SHARE else share}
    _require_meaning(named, wishes, told, id_)
    if not named and not wishes:
        _show(declared, layout, json=json)
        return
    if named:
        chosen = (files, tuple(kafka or ()), *time_range(begin, end, datetime.now(UTC)))
        paced = {"share": share, "rate": rate}
        request = planned(declared, layout, chosen, source, note, paced)
        print(f"load {request.id}: {request.plan.what}", file=sys.stderr)
    else:
        request = _changed(declared, layout, wishes[0], id_)
    if request.wish == "open" and wait:
        state = _carry_out(declared, layout, root, request)
        if state.is_open:
            again = command("load", "--resume", "--id", state.id)
            raise hindrance(layout, declared, state.id) or LeftError(
                f"load {state.id}: {progress_in_words(state)}", again
            )
    else:
        state = load_state(layout, declared.name, request)
    require_done(state)
    gone = _passed_over(declared, layout, request)
    words = [f"passed over: {path}: {why}" for path, why in gone.items()]
    document = {
        "pipeline": declared.name,
        **SourceLabels(declared.sources).fields(state),
        "passed_over": gone,
    }
    respond(json, document, *words, *_said(declared, state))


def _require_meaning(
    named: Sequence[str], wishes: Sequence[str], told: Mapping[str, object], id_: str | None
) -> None:
    """Raises BadParameter for options without effect: those of a new load (``told``, by name) if
    none begins, and an id without --pause, --resume or --cancel."""
    unheeded = [] if named else [name for name, value in told.items() if value is not None]
    if unheeded:
        said = "it is only for a new load: name what it reads, with --files or --kafka"
        raise typer.BadParameter(said, param_hint=unheeded[0])
    if id_ is not None and not wishes:
        said = "it belongs to --pause, --resume or --cancel"
        raise typer.BadParameter(said, param_hint="--id")


def _passed_over(declared: Pipeline, layout: Layout, request: LoadRequest) -> dict[str, str]:
    """What the load could not read, and why."""
    source = declared.sources[request.source]
    place = DeployedSource(layout.storage, declared.name, source)
    return dict(connector_of(source).passed_over(place, load_folder(layout, request.id)))


def _changed(declared: Pipeline, layout: Layout, option: str, id_: str | None) -> LoadRequest:
    """Change the load that ``option`` and ``id_`` select. A load that was taken back continues only
    if ``id_`` names it. Raises UsageError if no load or several loads are meant, and as
    ``require_tables`` if a load is to continue."""

    def is_meant(each: LoadRequest) -> bool:
        if id_ not in (None, each.id):
            return False
        is_named = option == "--resume" and id_ is not None
        return each.wish in requests.UNDONE or (is_named and state(each) == "taken back")

    def state(each: LoadRequest) -> str:
        return load_state(layout, declared.name, each).state

    known = requests.all_loads(layout, declared.name)
    found = [each for each in known if is_meant(each)]
    if len(found) != 1:
        ended = next((state(each) for each in known if each.id == id_), None)
        if found:
            which = f"{len(found)} loads are open; say which: --id"
        elif id_ is None:
            which = "no load is open"
        else:
            which = f"the load {id_} is {ended}" if ended else f"it has no load {id_}"
        raise UsageError(f"{declared.name}: {which}", remedy=f"see them: {command('load')}")
    if option == "--resume":
        require_tables(declared, layout, found[0].source)
    changes: dict[str, Any] = {"wish": _WISHES[option], "why": ""}
    if option == "--cancel":
        changes["until"] = None
    asked = {"load": found[0].id, "changes": changes}
    # Requests are decided in the order of their times. The load may be from a clock that is ahead.
    now = max(datetime.now(UTC), found[0].at + timedelta(microseconds=1))
    send_request(layout, LOAD_CHANGE, asked, now)
    return replace(found[0], **changes)


def _carry_out(declared: Pipeline, layout: Layout, root: str, request: LoadRequest) -> LoadState:
    """Wait until the running driver has carried the load out. If no driver runs, start one here,
    which ends after the load."""
    require_machine(declared)
    driver = driver_of_requests(declared, root, loads=True)
    log_file.divert_to(layout, "load")
    with waiting("starting a driver for the load") as say:
        ended = threading.Event()

        def tell() -> None:
            with suppress(HeadgateError):  # the driver reports it itself
                follow(layout, declared, request.id, say, is_over=ended.is_set)

        teller = threading.Thread(target=tell, name="load", daemon=True)
        teller.start()
        try:
            drive(driver)
        except TablesInUseError as held:
            again = command("load", "--resume", "--id", request.id)
            said = f"the load {request.id} waits: {held.message}"
            raise TablesInUseError(said, remedy=f"when it has ended: {again}") from held
        except LeaseHeldError:
            ended.set()  # two would report it
            teller.join(timeout=2)
            say("the running driver takes it, between the batches of the stream")
            try:
                return follow(layout, declared, request.id, say)
            except KeyboardInterrupt:
                print("the load continues in the running driver", file=sys.stderr)
                raise
        finally:
            ended.set()
            teller.join(timeout=2)
    found = requests.find_load(layout, declared.name, request.id)
    return load_state(layout, declared.name, found or request)


def _said(declared: Pipeline, state: LoadState) -> list[str]:
    if state.state == "done":
        said = f"{declared.name}: loaded {plural(state.rows, 'record')}, {state.what}"
        return [f"{said}; its late rows are folded", command("ledger", "--by-id")]
    if state.state == "cancelled":
        said = f"the load {state.id} is ended after {plural(state.rows, 'record')}, which stay"
        return [said, command("late list")]
    word = f" ({state.state})" if state.state == "paused" else ""
    return [f"load {state.id}{word}: {progress_in_words(state)}", command("load", "--resume")]


def _show(declared: Pipeline, layout: Layout, *, json: bool) -> None:
    found, labels = load_states(layout, declared), SourceLabels(declared.sources)
    read = (f"{each.read:,} of {each.total:,} {each.unit}" for each in found)
    rows = (
        (each.id, *labels.cell(each.source), each.state, done, each.rows, each.what)
        for each, done in zip(found, read, strict=True)
    )
    shown = grid("", "load", *labels.header, "state", "read:", "records:", "what", rows=rows)
    troubles = [f"{each.id}: {each.why}" for each in found if each.why]
    document = {"pipeline": declared.name, "loads": [*map(labels.fields, found)]}
    begin = command(
        "load", *["--source", next(iter(declared.sources))] * labels.several, "--files", "archive"
    )
    nothing = f"{declared.name} has no loads; begin one: {begin}"
    respond(json, document, *([shown, *troubles] if found else [nothing]))


Chosen = tuple[str | None, tuple[str, ...], datetime | None, datetime | None]
"""Files, topics, and the range of times in which they were written: from, to."""


def planned(
    declared: Pipeline,
    layout: Layout,
    chosen: Chosen,
    source: str | None,
    note: str,
    paced: Mapping[str, Any],
) -> LoadRequest:
    """Request a load. Raises UsageError, TooManyLoadsError or SourceError; then nothing is
    requested."""

    def session() -> AbstractContextManager[Any]:
        from headgate.driver.session import passing_session

        return passing_session("headgate-load", 1, jars_for(declared))

    found = the_source(declared, source)
    require_tables(declared, layout, found.name)
    requests.number_after(requests.all_loads(layout, declared.name), found.name)
    now = datetime.now(UTC)
    id_ = new_id(now)
    place = DeployedSource(layout.storage, declared.name, found)
    folder = requests.load_folder(layout, id_)
    with waiting("looking at what there is to load"):
        plan = connector_of(found).plan_load(place, LoadWanted(*chosen), folder, session, now)
    request = requests.LoadRequest(id_, found.name, plan, person(note), now, **paced)
    send_request(layout, LOAD, request.document(), now, id_)
    return request


def require_tables(declared: Pipeline, layout: Layout, source: str) -> None:
    """Raises UsageError if there are no tables."""
    if not Table(layout.storage, BRONZE.path(source), pipeline=declared.name).exists:
        raise UsageError(
            f"{declared.name} has no tables yet: history is loaded beside a stream that has begun",
            remedy=command("run", "--once"),
        )
