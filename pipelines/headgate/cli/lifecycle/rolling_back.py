"""The rollback of an upgrade: the savepoint is restored, and the old declaration is started."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from headgate import exit_codes
from headgate.cli.machine_faults import machine_fault
from headgate.cli.options import command
from headgate.cli.restoring import restore_in_place
from headgate.commands import pipeline_command
from headgate.declaration.kinds import BRONZE, kind_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.history.savepoints.deployment import Deployment
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.storage.layout import Layout
from headgate.supervision import local


def rolled_back(
    layout: Layout,
    declared: Pipeline,
    found: Deployment,
    savepoint: Savepoint,
    root: str,
    failed: HeadgateError | OSError,
    logs: Sequence[str] | None,
) -> HeadgateError:
    """Roll back, and start the old declaration with the options ``logs`` unless they are None.
    Returns the error to raise. Raises HeadgateError if the rollback fails."""
    why, kept = known(failed), found.declaration
    old = ["--declared-as", kept, *logs] if logs is not None and kept else None
    runs = _roll_back(layout, declared, found, savepoint, root, why, old)
    return HeadgateError(
        f"rolled back to savepoint {savepoint.id}: {why.message}",
        remedy=_after_rollback(declared, found, runs=runs),
        code=exit_codes.NOT_ALIVE,
    )


def _roll_back(
    layout: Layout,
    declared: Pipeline,
    found: Deployment,
    savepoint: Savepoint,
    root: str,
    why: HeadgateError,
    options: Sequence[str] | None,
) -> bool:
    """Restore the savepoint, and start a driver with ``options`` unless they are None; returns
    whether it was started. Raises HeadgateError if this fails."""
    reread = any(kind_of(path) == BRONZE for path in found.to_change())
    back = command("savepoint restore", savepoint.id, *["--reread"] * reread)
    done = "the new declaration may still be at work"
    remedy = f"{command('stop', '--now')}, then {back}"
    try:
        local.stop_now(layout)  # otherwise a supervisor might start the new one again
        done = "the pipeline is stopped"
        remedy = back
        restore_in_place(declared, layout, savepoint, reread=reread)
        done = "the tables are restored, and the pipeline is stopped"
        remedy = f"{_put_back(declared)}, then {command('start')}"
        if options is not None:
            local.launch(layout, declared.file, root, options)
            return True
    except (HeadgateError, OSError) as failed:
        error = known(failed)
        raise HeadgateError(
            f"{why.message}; and the rollback to savepoint {savepoint.id} is not finished: "
            f"{error.message}; {done}",
            remedy=f"{error.remedy}\n{remedy}",
            code=exit_codes.NOT_ALIVE,
        ) from failed
    return False


def known(error: HeadgateError | OSError) -> HeadgateError:
    """The error, or what an error of the machine means."""
    if isinstance(error, HeadgateError):
        return error
    return machine_fault(error) or HeadgateError(str(error), pipeline_command("logs"))


def _after_rollback(declared: Pipeline, found: Deployment, *, runs: bool) -> str:
    """The state after a rollback, and what to type next."""
    see = f"see {command('logs')}"
    if not found.declaration:
        back = "nothing runs: the old declaration is not kept; take it from your version control"
        return f"{back}; {declared.file} still has the new one: {see}"
    is_so = "is started again" if runs else "is not running, as before"
    return (
        f"the old declaration {is_so}; {declared.file} still has the new one: {see}; the old one "
        f"comes back with: {_put_back(declared)}"
    )


def _put_back(declared: Pipeline) -> str:
    """The command that replaces the edited declaration by the deployed one. It writes another file
    first: the shell would truncate the file before the command reads it."""
    file, other = (shlex.quote(f"{declared.file}{end}") for end in ("", ".deployed"))
    deployed = command("plan", "--deployed")
    return f"{deployed} > {other} && mv {other} {file}"
