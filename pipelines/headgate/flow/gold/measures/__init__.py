"""Measures of gold tables: one module per measure, named as in a declaration.

``declaration/contracts/measure.py`` defines what a module must provide. ``sum.py`` is an example.
"""
