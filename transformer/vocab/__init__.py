"""From ids to activations and back, and the positions of tokens."""
