"""The numbers that NNabla gives to element types, by NumPy's types and back.

>>> int_to_np_dtype[np_dtpye_to_int[np.float32]].__name__
'float32'
"""

from __future__ import annotations

from typing import Any

import numpy as np

# NNabla's spelling. longdouble has no type in nnrs: its number is here for scripts that look at the table.
np_dtpye_to_int: dict[Any, int] = {
    bool: 0,
    np.byte: 1,
    np.ubyte: 2,
    np.short: 3,
    np.ushort: 4,
    np.int32: 5,
    np.uint32: 6,
    np.longlong: 9,
    np.int64: 9,
    np.ulonglong: 10,
    np.uint64: 10,
    np.float32: 11,
    np.double: 12,
    np.longdouble: 13,
}

int_to_np_dtype: dict[int, Any] = {number: dtype for dtype, number in np_dtpye_to_int.items()}
