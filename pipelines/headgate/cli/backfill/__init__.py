"""``headgate backfill``: a range of gold, computed again from bronze."""
