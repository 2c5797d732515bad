"""Process trees that end with their owner, even if it is killed.

A guard process runs the children of a tree in a folder. A folder has one guard at a time. The trees
are the Airflow of ``headgate up`` and the broker of ``headgate kafka up``. A driver needs none: its
JVM ends with it (``headgate.machine.jvm``).
"""
