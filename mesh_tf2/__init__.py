"""Mesh-TensorFlow: named dimensions and layouts, on TensorFlow 2."""
