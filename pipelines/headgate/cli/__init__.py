"""The command line: a file or a folder for each group of verbs.

The module of a verb is imported when the verb is used, and Spark when it is needed.
"""
