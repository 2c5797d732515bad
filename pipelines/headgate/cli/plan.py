"""``headgate plan``: check a declaration and say what it would run."""

from __future__ import annotations

from headgate.cli import declaration
from headgate.cli.options import Json, PipelineName
from headgate.cli.output import print_json


def plan(pipeline: PipelineName, json: Json = False) -> None:
    """Check a declaration and print what would run. Tables, schemas, windows, state."""
    from headgate.spec.plan import describe
    from headgate.spec.plan import plan as planned

    declared = declaration.load(pipeline)
    if json:
        print_json(planned(declared))
    else:
        print(describe(declared))
