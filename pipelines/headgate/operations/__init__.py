"""Operations on tables, each carried out at its place among the batches: a module per member."""
