"""The only access to files and documents."""
