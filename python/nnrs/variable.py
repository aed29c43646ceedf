"""Variables under NNabla's module name."""

from __future__ import annotations

from ._core import Context, NdArray, Variable

__all__ = ["Context", "NdArray", "Variable"]
