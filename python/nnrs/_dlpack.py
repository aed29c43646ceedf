"""The DLPack protocol of NdArray and Variable: other libraries take their memory on the host without a copy."""

from __future__ import annotations

from typing import Any

from ._core import NdArray, Variable

_HOST = (1, 0)


def _array_dlpack(self: NdArray, **kwargs: Any) -> Any:
    """A capsule with the memory of `data`; NumPy knows the arguments that a consumer may give."""
    return self.data.__dlpack__(**kwargs)


def _variable_dlpack(self: Variable, **kwargs: Any) -> Any:
    """A capsule with the memory of `d`."""
    return self.d.__dlpack__(**kwargs)


def _device(self: Any) -> tuple[int, int]:
    """The host: data on a GPU is copied from there."""
    return _HOST


def install() -> None:
    """Give both classes the protocol.

    >>> import numpy as np
    >>> a = NdArray.from_numpy_array(np.float32([1, 2]))
    >>> view = np.from_dlpack(a)
    >>> a.data[0] = 5
    >>> view.tolist()
    [5.0, 2.0]
    """
    for kind, dlpack in ((NdArray, _array_dlpack), (Variable, _variable_dlpack)):
        kind.__dlpack__ = dlpack  # type: ignore[method-assign]
        kind.__dlpack_device__ = _device  # type: ignore[method-assign]
