"""Operations on tables, each carried out between two batches. Each member is a module."""
