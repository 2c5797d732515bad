"""The counts of a batch in the state of its commit: records, and bytes of their values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.model import Record
from headgate.flow.bronze.sequencing import Sequenced


def counts_of(ordered: pa.Table, sequenced: Sequenced, record: Record) -> dict[str, int]:
    """The counts of a batch (``SEQUENCER_INPUT``) that was sequenced.

    The bytes of valid records are ``read_bytes`` less those of duplicates and quarantined records.
    """
    stamps = sequenced.stamps
    duplicate = _flagged(stamps, "duplicate", ordered.num_rows)
    invalid = ~ordered.column("conforms").to_numpy()
    if record.quarantines_differing:
        invalid |= _flagged(stamps, "differing", ordered.num_rows)
    size = pc.fill_null(ordered.column("size"), 0).to_numpy()
    return {
        "read": ordered.num_rows,
        "duplicate": sequenced.duplicates,
        "differing": sequenced.differing,
        "corrected": sequenced.corrected,
        "read_bytes": int(size.sum()),
        "duplicate_bytes": int(size[duplicate].sum()),
        "quarantined_bytes": int(size[invalid & ~duplicate].sum()),
    }


def _flagged(stamps: pa.Table, name: str, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A flag of ``STAMPS`` for each row of the batch; false for a row without stamps."""
    flags = np.zeros(rows, np.bool_)
    flags[stamps.column("row").to_numpy()] = stamps.column(name).to_numpy()
    return flags
