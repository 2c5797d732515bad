"""Operations on tables, each carried out between two batches. Each member is a module.

``contract.py`` says what a module has to bring. ``drain.py`` is an example.
"""
