"""Convolutions: sums over neighbours, in one to three dimensions."""
