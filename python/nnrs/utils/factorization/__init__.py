"""Decompositions of arrays."""

from __future__ import annotations

from typing import Any

from ..._missing import missing_name
from . import cpd

__all__ = ["cpd"]


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name)
