"""From the checked sections of a file to the values of ``model.py``."""
