"""Child processes that end with their owner, however it dies, with all that they started.

A guard, a process of its own, runs them in a folder, one guard at a time for each folder.
"""
