"""Finding what is damaged of a pipeline, and mending it from what is sound."""
