"""Process trees that end with their owner, even if it is killed.

A guard process runs the children of a tree in a folder. A folder has one guard at a time.
"""
