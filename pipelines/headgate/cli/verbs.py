"""Every verb by name. The module of a verb is imported when the verb is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

VERBS = {
    "run": ("lifecycle.run:run", "Run a pipeline here."),
    "start": ("lifecycle.background:start", "Start a pipeline in the background."),
    "stop": ("lifecycle.background:stop", "Stop a pipeline after its current batch."),
    "restart": ("lifecycle.background:restart", "Stop a pipeline and start it again."),
    "upgrade": (
        "lifecycle.upgrade:upgrade",
        "Deploy a changed declaration, and roll back if it fails.",
    ),
    "pause": ("lifecycle.pausing:pause", "Read nothing new until `resume`."),
    "resume": ("lifecycle.pausing:resume", "Continue after `pause`."),
    "status": ("inspect.status:status", "Show the state of a pipeline's jobs."),
    "logs": ("inspect.logs:logs", "Show the log of a pipeline that `start` has started."),
    "repair": (
        "maintain.repair:repair",
        "Find what is damaged, and rebuild what is built from bronze.",
    ),
    "list": (
        "inspect.listing:list_pipelines",
        "List the pipelines found by name here, with their states.",
    ),
    "plan": ("plan:plan", "Check a declaration; show what would run and what changes."),
    "ledger": ("ledger:ledger", "Account for every event."),
    "metrics": ("metrics:metrics", "Serve metrics of pipelines for Prometheus, until Ctrl-C."),
    "query": ("inspect.query:query", "Query the tables with SQL."),
    "dashboard": ("dashboard:dashboard", "Show the tables in a browser."),
    "versions": (
        "inspect.query:versions",
        "Show which versions of the tables belong together.",
    ),
    "expectations": (
        "expectations:app",
        "The rules that rows must meet, and Great Expectations.",
    ),
    "compact": ("maintain.maintenance:compact", "Merge the small files of a pipeline's tables."),
    "vacuum": ("maintain.maintenance:vacuum", "Delete files and log entries that nothing needs."),
    "demo": ("demo.verb:demo", "Watch a stream of bids, with all their faults, become gold."),
    "up": ("setup.up:up", "Run Airflow on this machine, until Ctrl-C."),
    "down": ("setup.up:down", "End the Airflow that `up` started."),
    "doctor": ("setup.doctor:doctor", "Check this machine, and name a remedy for each problem."),
    "init": ("setup.init:init", "Create a project: declarations, sample data, tests."),
    "savepoint": (
        "maintain.savepoint:app",
        "Savepoints of a pipeline: take one, go back to one.",
    ),
    "gate": ("maintain.gate:app", "Gold tables that rules hold back."),
    "quarantine": ("quarantine.verbs:app", "Refused records: show them, correct and replay them."),
    "late": ("late:app", "Late rows: show them, fold them into the final rows."),
    "load": (
        "load:load",
        "Load history beside the live stream, and fold its late rows.",
    ),
    "backfill": (
        "backfill.verb:backfill",
        "Compute final windows again from bronze, and compare.",
    ),
    "publication": ("publication:app", "What is published, and how far."),
    "quality": ("quality:app", "What rules have decided."),
    "files": ("maintain.files:app", "The landing files of a pipeline."),
    "kafka": ("kafka:app", "A Kafka broker to develop with, and its topics."),
}
"""The function of each verb and the first sentence of its help, in the order of the help."""


class Verbs(TyperGroup):
    """A group that holds names and first sentences, and imports a verb when it is resolved."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=says) for name, (_, says) in VERBS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, known, rest = super().resolve_command(ctx, args)
        return name, known and command_of(str(name)), rest


def command_of(name: str) -> Any:
    """The command behind a name, imported now."""
    module, _, attribute = VERBS[name][0].partition(":")
    verb = getattr(import_module(f"headgate.cli.{module}"), attribute)
    app = typer.Typer(callback=lambda: None, add_completion=False, rich_markup_mode=None)
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=name)
    else:
        app.command(name)(verb)
    return typer.main.get_group(app).commands[name]
