"""Sources of events. A source is a log: it has offsets, and a range can be read again."""
