"""The parts of a reading: each reads one kind of tables or documents, at its own pace."""
