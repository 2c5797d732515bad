"""``run``, ``start``, ``stop``, ``upgrade`` and what runs a driver: the life of a pipeline."""
