"""Gold: the parts that all operators with folds share: pairs, states, late rows, one commit."""
