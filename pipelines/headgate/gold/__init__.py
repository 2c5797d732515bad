"""Gold: what all operators that fold share: pairs, states, late rows, one commit."""
