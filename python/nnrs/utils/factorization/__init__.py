"""Decompositions of arrays."""

from __future__ import annotations

from . import cpd

__all__ = ["cpd"]
