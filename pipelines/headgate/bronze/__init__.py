"""Bronze: the sequenced log. Position, id, event time, clock and duplicates, decided once."""
