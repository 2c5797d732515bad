"""The command line: one module per verb, in the groups of its help.

The module of a verb is imported when the verb is used, and Spark when it is needed.
"""
