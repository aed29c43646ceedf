"""Indexing and matrix products of Variable and NdArray, in terms of the function library."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, UnsupportedError, describe, message


def getitem(x: Any, key: Any) -> Any:
    """`x[key]`: integers, slices, `...` and None as slices; leading integer or boolean arrays as gathered rows."""
    from . import functions as F

    parts = list(key) if isinstance(key, tuple) else [key]
    if any(_is_array(p) for p in parts):
        return _gather(x, parts)
    start, stop, step, shape = _slices(x.shape, parts)
    y = F.slice(x, start, stop, step)
    return y if y.shape == shape else F.reshape(y, shape)


def setitem(x: Any, key: Any, value: Any) -> None:
    """`x[key] = value` on the array's own memory."""
    if isinstance(x, Variable):
        hint = "assign to a part of .d instead, which works in place"
        raise UnsupportedError(message("Variable.__setitem__", None, "not in this version of nnrs yet", hint=hint))
    if isinstance(value, (NdArray, Variable)):
        value = np.asarray(value)
    x.data[key] = value


def _is_array(part: Any) -> bool:
    return isinstance(part, (list, np.ndarray, Variable, NdArray)) and not (
        isinstance(part, np.ndarray) and part.ndim == 0
    )


def _expanded(ndim: int, parts: list[Any]) -> list[Any]:
    """The key with `...` written out and the missing axes added."""
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    if taken > ndim:
        raise IndexError(f"too many indices: {taken} for {ndim} axes")
    fill = [slice(None)] * (ndim - taken)
    if Ellipsis in parts:
        i = parts.index(Ellipsis)
        return parts[:i] + fill + parts[i + 1 :]
    return parts + fill


def _slices(shape: tuple[int, ...], parts: list[Any]) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Arguments of F.slice, and the shape that the result takes."""
    start: list[int] = []
    stop: list[int | None] = []
    step: list[int] = []
    result: list[int] = []
    axis = 0
    for part in _expanded(len(shape), parts):
        if part is None:
            result.append(1)
            continue
        n = shape[axis]
        if isinstance(part, slice):
            if part.step == 0:
                raise ValueError("slice step cannot be zero")
            first, last, stride = part.indices(n)
            count = len(range(first, last, stride))
            start.append(first)
            stop.append(last if last >= 0 else None)
            step.append(stride)
            result.append(count)
        else:
            i = _integer(part)
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
            start.append(i % n)
            stop.append(i % n + 1)
            step.append(1)
        axis += 1
    return tuple(start), tuple(stop), tuple(step), tuple(result)


def _integer(part: Any) -> int:
    try:
        return operator.index(part)
    except TypeError:
        expected = "integers, slices, '...', None and integer or boolean arrays"
        raise ArgumentTypeError(message("__getitem__", "key", expected, describe(part))) from None


def _gather(x: Any, parts: list[Any]) -> Any:
    """Rows picked by arrays: leading arrays as GatherNd, with None before and between."""
    from . import functions as F

    arrays = [p for p in parts if p is not None]
    if len(arrays) == 1 and isinstance(arrays[0], (Variable, NdArray)):
        return F.gather_nd(x, arrays[0])
    if not all(_is_array(p) or isinstance(p, (int, np.integer)) for p in arrays):
        hint = "put the arrays first, or index in two steps"
        raise NotImplementedError(message("__getitem__", "key", "arrays without slices beside them", repr(parts), hint))
    indices: list[np.ndarray] = []
    for p in arrays:
        a = np.asarray(p)
        indices += list(np.nonzero(a)) if a.dtype == bool else [a]
    joint = np.stack(np.broadcast_arrays(*indices)).astype(np.int64)
    make = Variable.from_numpy_array if isinstance(x, Variable) else NdArray.from_numpy_array
    y = F.gather_nd(x, make(joint))
    if None not in parts:
        return y
    picked = iter(y.shape)
    shape = [1 if p is None else next(picked) for p in parts]
    return F.reshape(y, (*shape, *picked))


def matmul(a: Any, b: Any) -> Any:
    """`a @ b`, as NumPy."""
    from . import functions as F

    if not isinstance(b, (Variable, NdArray)):
        return NotImplemented
    if a.ndim == 0 or b.ndim == 0:
        raise ArgumentTypeError(message("__matmul__", None, "operands with 1 or more axes", f"{a.shape} and {b.shape}"))
    if a.ndim == 1 and b.ndim == 1:
        return F.sum(a * b)
    left = F.reshape(a, (1, *a.shape)) if a.ndim == 1 else a
    right: Any = b
    right = F.reshape(right, (*b.shape, 1)) if b.ndim == 1 else right
    y = F.affine(left, right) if left.ndim == right.ndim == 2 else F.batch_matmul(left, right)
    if a.ndim == 1:
        return F.reshape(y, y.shape[:-2] + y.shape[-1:])
    return F.reshape(y, y.shape[:-1]) if b.ndim == 1 else y


def bool_fill(x: Any, mask: Any, value: Any) -> Any:
    """Set x to `value` where `mask` is not zero."""
    from . import functions as F

    return F.where(mask, F.constant(float(value), x.shape), x)
