"""The loads of history that an error has stopped, for `status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import typer

from headgate.cli.options import command
from headgate.cli.output import console
from headgate.errors import HeadgateError
from headgate.storage.layout import Layout


def stopped_loads(layout: Layout) -> list[dict[str, str]]:
    """``id``, ``what`` it reads, and ``why`` it is stopped."""
    from headgate.loads.requests import all_of

    try:
        found = all_of(layout)
    except HeadgateError:
        return []  # a damaged document: the driver reports it
    return [
        {"id": each.id, "what": each.plan.what, "why": each.why}
        for each in found
        if each.wish == "stopped"
    ]


def show_stopped(loads: Sequence[Mapping[str, str]]) -> None:
    for each in loads:
        text = f"load {each['id']}, {each['what']}, is stopped: {each['why']}"
        console().print(text, style="red", markup=False, soft_wrap=True)
    if loads:
        typer.echo(command("load", "--resume"))
