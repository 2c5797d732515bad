"""What runs Great Expectations: the only package that imports it, inside functions."""
