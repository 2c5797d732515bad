"""What of a pipeline waits for a person, or is not done: files that are set aside, gold that is
held, dead letters, loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from headgate.cli.options import command
from headgate.cli.output import console
from headgate.cli.rows import shown
from headgate.cli.undone_loads import show_undone, undone_loads
from headgate.commands import rendered
from headgate.storage.documents import encoded

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.gates.documents import Hold
    from headgate.loads.state import LoadState
    from headgate.storage.layout import Layout
    from headgate.supervision.set_aside import SetAside


@dataclass(frozen=True)
class Waiting:
    aside: Sequence[SetAside]
    held: Sequence[Hold]
    refused: Mapping[str, int]
    loads: Sequence[LoadState]

    def document(self) -> dict[str, Any]:
        return {
            "set_aside": {each.source: [asdict(f) for f in each.files] for each in self.aside},
            "held": [encoded(hold) for hold in self.held],
            "dead_letters": self.refused,
            "open_loads": [asdict(each) for each in self.loads if each.state != "stopped"],
            "stopped_loads": [asdict(each) for each in self.loads if each.state == "stopped"],
        }

    def show(self) -> None:
        for files in self.aside:
            _red(f"{files.source}: {files}")
            typer.echo(rendered(files.remedy))
        for hold in self.held:
            _red(f"{hold.title} is held since {hold.since:%F %T}Z: {hold.why}")
        if self.held:
            typer.echo(command("gate status"))
        for name, count in self.refused.items():
            if count:
                _red(f"dead letters of {name}, rows that its sink refuses: {count:,}")
                typer.echo(command("publication letters", name))
        show_undone(self.loads)


def waiting(layout: Layout, declared: Pipeline) -> Waiting:
    """Raises HeadgateError if a table or a document is damaged."""
    from headgate.gates.documents import holds
    from headgate.sinks.letters import dead_letters
    from headgate.supervision.set_aside import set_aside

    return Waiting(
        tuple(set_aside(layout, declared)),
        holds(layout, declared),
        dead_letters(declared, layout),
        undone_loads(layout, declared),
    )


def _red(text: str) -> None:
    console().print(shown(text), style="red", markup=False, soft_wrap=True)
