"""The module in which NNabla's NdArray lies."""

from __future__ import annotations

from ._core import NdArray

__all__ = ["NdArray"]
