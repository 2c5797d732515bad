"""``python -m headgate.cli``: the command line of child processes, which does not depend on
PATH."""

from headgate.cli.main import main

if __name__ == "__main__":
    main()
