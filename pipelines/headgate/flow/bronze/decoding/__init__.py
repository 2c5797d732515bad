"""Decoding: from the bytes of a record to its fields, or to the reason why it is invalid."""
