"""The module in which NNabla's Variable lies."""

from __future__ import annotations

from ._core import Context, Variable
from .communicators import CommunicatorBackwardCallback

__all__ = ["CommunicatorBackwardCallback", "Context", "Variable"]
