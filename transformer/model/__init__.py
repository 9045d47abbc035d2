"""The models: one stack, or an encoder and a decoder."""
