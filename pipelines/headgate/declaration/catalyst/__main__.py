"""Answers requests for Spark's analysis: a JSON object on each line, ``{"text", "schema"}``, and an
``Analysis`` on each line of the output. The process ends when its input ends."""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    # Spark's own output must not come between answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from headgate.declaration.catalyst.analyzer import Analyzer

    analyzer = Analyzer()
    for line in sys.stdin:
        request = json.loads(line)
        answer = analyzer.analyse(request["text"], request["schema"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
