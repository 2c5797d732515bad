"""Whatever changes or keeps the past.

- ``loads``: history that is read beside the stream. ``replay``: refused records that go through
  bronze once more, corrected. The driver carries out both, between two batches.
- ``savepoints``: savepoints, restores, copies, rebuilds, and resets, by which a table gets
  the files of another version; what a changed declaration does to existing tables.
- ``backfill``: final windows of a range that are computed again beside the stream, and compared.
- ``maintenance``: small files are merged, and files that nothing needs are removed.
- ``repair``: damage is found, and tables are built again from bronze.
"""
