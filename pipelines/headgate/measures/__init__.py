"""Measures of gold tables: one module per measure, named as in a declaration."""
