"""Variables under NNabla's module name.

>>> x = Variable((2, 3), need_grad=True)
>>> x.d = 1.5
>>> x.shape, x.need_grad, x.d.tolist()
((2, 3), True, [[1.5, 1.5, 1.5], [1.5, 1.5, 1.5]])
"""

from __future__ import annotations

from ._core import Context, NdArray, Variable

__all__ = ["Context", "NdArray", "Variable"]
