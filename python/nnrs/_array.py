"""NNabla's arrays below NdArrays: nnrs has none that Python could hold.

>>> import nnrs as nn
>>> nn.NdArray.from_numpy_array([1.0, 2.0]).data  # what an array holds, as one of NumPy
array([1., 2.])
"""

from __future__ import annotations

from typing import Any

from ._errors import UnsupportedError, message

__all__ = ["Array"]


class Array:
    """An array on a device, of which NNabla's NdArray may have several.

    Raises:
        RuntimeError: Always: memory of nnrs is reached by NdArrays alone.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        hint = "use NdArray: its data, data_ptr(dtype) and __dlpack__"
        raise UnsupportedError(message("Array", None, "nnrs has no arrays below NdArrays", hint=hint))
