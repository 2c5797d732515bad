"""Commands that see the outage of a broker sooner: ``python -m tests.support.impatient VERB …``.

Their requests time out after 4 seconds; without this, after 10 to 30 seconds.
"""

from __future__ import annotations

from headgate.cli.main import main
from headgate.flow.sources.kafka import batches, cluster

TIMEOUT = 4_000  # milliseconds; a broker on a busy machine answers within 2 seconds

if __name__ == "__main__":
    cluster._TIMEOUT = batches._POLL = TIMEOUT
    batches._ASKING = dict.fromkeys(batches._ASKING, str(TIMEOUT))
    main()
