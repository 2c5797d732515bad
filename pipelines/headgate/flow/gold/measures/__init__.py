"""Measures of gold tables: one module per measure, named as in a declaration.

``declaration/measures.py`` says what a module has to bring. ``sum.py`` is an example.
"""
