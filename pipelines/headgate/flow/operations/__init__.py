"""Operations on tables, each carried out between two batches. Each kind is a module.

``declaration/contracts/operation.py`` defines what a module must provide. ``drain.py`` is an
example.
"""
