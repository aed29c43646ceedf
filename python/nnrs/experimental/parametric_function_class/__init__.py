"""Layers as objects that have their parameters as attributes, apart from the global ones."""
