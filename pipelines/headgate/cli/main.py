"""The console script ``headgate``."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import typer

from headgate import exit_codes
from headgate.cli import json_log
from headgate.cli.hidden import shown
from headgate.cli.log_file import record_crash
from headgate.cli.machine_faults import machine_fault
from headgate.cli.options import escaped
from headgate.cli.output import print_json
from headgate.cli.verbs import Verbs
from headgate.commands import Place, program, set_place
from headgate.errors import HeadgateError, UsageError, first_line
from headgate.machine.process_tree.utf8 import use_utf8

app = typer.Typer(
    name="headgate",
    cls=Verbs,
    help="A medallion pipeline on Spark and Delta Lake: every event accounted for, by id.",
    epilog=exit_codes.epilog(),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.callback()(lambda: None)


def main() -> NoReturn:
    """Run the command line and end the process.

    Threads of native libraries and of the JVM's gateway may abort or print errors while an
    interpreter shuts down. Headgate needs no shutdown: it flushes the streams and ends the process.
    """
    use_utf8()
    _open_streams()
    code = answer(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Replace closed streams by /dev/null, and escape characters that a stream cannot encode."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def answer(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Errors are printed to stderr."""
    set_place(Place(program()))
    try:
        _require_text(arguments)
        app(list(arguments), prog_name="headgate")
    except SystemExit as end:
        # Typer ends with 1 if the reader of stdout has closed it, as `head` does.
        if isinstance(end.__context__, BrokenPipeError):
            return exit_codes.OK
        code = end.code if isinstance(end.code, int) else exit_codes.OK
        if "--json" in arguments:
            _print_usage_error(end.__context__, code)
        return code
    except HeadgateError as error:
        return _refuse(arguments, error.message, error.remedy, error.exit_code)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except Exception as error:
        path = record_crash(error)
        details = f"details: {path}" if path else "".join(traceback.format_exception(error))
        if fault := machine_fault(error):
            remedy = f"{fault.remedy}\n{details}" if path else fault.remedy
            return _refuse(arguments, fault.message, remedy, fault.exit_code)
        return _refuse(arguments, first_line(error), details, exit_codes.UNEXPECTED)
    return exit_codes.OK


def _require_text(arguments: Sequence[str]) -> None:
    """Raises UsageError for bytes that are not UTF-8: no table or message could hold them."""
    for each in arguments:
        if escaped(each) != each:
            raise UsageError(f"{escaped(each)}: not UTF-8", remedy="type it as UTF-8")


def _print_usage_error(error: BaseException | None, code: int) -> None:
    """Print a usage error as a JSON object. The library has already printed it as text."""
    said = getattr(error, "format_message", None)
    if said is None:
        return
    context = getattr(error, "ctx", None)
    verb = context.command_path if context is not None else "headgate"
    remedy = f"see what can be typed: {verb} --help"
    with suppress(OSError):  # the reader has closed the stream
        print_json({"error": {"message": shown(said()), "remedy": remedy, "exit_code": code}})


def _refuse(arguments: Sequence[str], message: str, remedy: str, code: int) -> int:
    message, remedy = shown(message), shown(remedy)
    with suppress(OSError):  # the reader has closed the stream
        if (log := json_log.active()) and isinstance(sys.stderr, json_log.JsonStream):
            sys.stderr.put(log.error(message, remedy, code))
        else:
            print(f"{message}\n{remedy}", file=sys.stderr)
        if "--json" in arguments:
            print_json({"error": {"message": message, "remedy": remedy, "exit_code": code}})
    return code
