"""One wheel, and one project, for all tests of this package."""
