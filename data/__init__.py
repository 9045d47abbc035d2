"""Readers, vocabularies and packing: from text to batches of ids."""
