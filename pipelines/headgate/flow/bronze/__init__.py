"""Bronze: the sequenced log. Each record's position, id, event time and watermark at arrival, and
whether it is a duplicate, are decided once."""
