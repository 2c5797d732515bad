"""Gold: event-time windows as a commutative fold of silver rows, with late rows beside them."""
