"""``python -m headgate.machine.jars``: fetch the jars that the locks name, print their folder."""

from __future__ import annotations

import sys

from headgate.errors import HeadgateError
from headgate.machine.jars.cache import cache_folder
from headgate.machine.jars.ivy import fetch
from headgate.machine.jars.lock import LockSet


def main() -> int:
    try:
        jars = {jar for lock in LockSet for jar in fetch(lock)}
    except HeadgateError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{len(jars)} jars checked in {cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
