"""Errors that keep a driver from starting, or that end it."""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import pipeline_command, shell_command
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.lake.tables.errors import FencedError


class DefinitionChangedError(HeadgateError, code=exit_codes.USAGE):
    """The tables were made from another declaration."""

    def __init__(self, pipeline: Pipeline, table: str) -> None:
        super().__init__(
            f"{pipeline.file}: {table} was made from another declaration of {pipeline.name}",
            remedy=f"see what changed and what is needed: {pipeline_command('plan')}\n"
            f"apply it: {pipeline_command('upgrade')}",
        )


class ResetAskedError(FencedError):
    """A reset of this job's tables was requested. The next start carries it out."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(
            f"{pipeline.name}: a restore or a repair has requested a reset of its tables",
            remedy=f"start again; the start finishes the reset: {pipeline_command('start')}",
        )


class JavaEndedError(HeadgateError, code=exit_codes.MACHINE):
    """Spark's JVM did not start. It wrote the reason to its own standard error."""

    def __init__(self) -> None:
        super().__init__(
            "Java ended before Spark had started",
            remedy=f"see what it said: {pipeline_command('logs', '--spark')}\n"
            f"check the machine: {shell_command('doctor')}",
        )


class JavaDiedError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """Spark's JVM has ended while this process used it."""

    def __init__(self) -> None:
        super().__init__(
            "Spark's JVM has died; the kernel may have ended it because memory was short",
            remedy="nothing is lost: start again\n"
            "if it happens again, lower HEADGATE_DRIVER_MEMORY, or give the machine more memory\n"
            f"see what Spark said: {pipeline_command('logs', '--spark')}",
        )


class StopRequested(Exception):
    """Raised before a micro-batch begins: the batch has changed nothing."""


class PlanError(HeadgateError, code=exit_codes.TAKEN_OVER):
    """Spark planned a range that does not continue bronze. The next start plans it again."""
