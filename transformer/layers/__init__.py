"""The layers that a Transformer is stacked from."""
