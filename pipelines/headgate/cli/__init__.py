"""The command line: one module per verb, in the groups of its help.

Nothing heavy is imported before a verb needs it.
"""
