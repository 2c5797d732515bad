"""``python -m headgate.cli``: how a child process is started, whatever is on PATH."""

from headgate.cli.main import main

if __name__ == "__main__":
    main()
