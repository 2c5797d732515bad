"""A driver as a process of its own: ``python -m tests.support.runner DECLARATION ROOT [OPTION…]``.

Options: --close-windows, --take-over, --layers bronze,silver. What ended it is the last line of
its output: ``done``, or the name of the error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headgate.jobs.driver import Driver, Task
from headgate.spec.errors import HeadgateError
from headgate.spec.load import load
from headgate.storage.ownership import LAYERS


def main(declaration: str, root: str, *options: str) -> int:
    layers = LAYERS
    if "--layers" in options:
        layers = tuple(options[options.index("--layers") + 1].split(","))
    task = Task(
        load(Path(declaration)),
        root,
        layers=layers,
        once=True,
        close_windows="--close-windows" in options,
        take_over="--take-over" in options,
    )
    try:
        Driver(task).run()
    except HeadgateError as error:
        print(error, type(error).__name__, sep="\n", flush=True)
        return error.exit_code
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    # deltalake can abort the interpreter on its way out.
    os._exit(code)
