"""Helpers for programs on a GPU."""
