"""Gradients, from the rules that stand with each operation."""
