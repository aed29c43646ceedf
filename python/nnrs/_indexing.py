"""Indexing and matrix products of Variable and NdArray, in terms of the function library.

A key is what NumPy takes: integers, slices, `...`, None, boolean and integer arrays. Variables as indices stay in the
graph (integers, or as a mask where their type is bool, which is read when the graph is made).
"""

from __future__ import annotations

import operator
import string
from typing import Any

import numpy as np

from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, GraphError, OutOfBoundsError, ShapeError, UnsupportedError, describe, message
from ._members import as_array, as_variable, replace


def getitem(x: Any, key: Any) -> Any:
    """`x[key]`: slices where the key has no arrays, else gathered elements."""
    from . import functions as F

    parts = _parts(key)
    if not any(_is_array(p) for p in parts):
        start, stop, step, shape = _slices(x.shape, parts)
        y = F.slice(x, start, stop, step)
        return y if y.shape == shape else F.reshape(y, shape)
    leading = [p for p in parts if p is not None]
    if any(isinstance(p, Variable) for p in parts):
        return _with_new_axes(F.gather_nd(x, _graph_indices(x, leading)), parts, x.ndim - len(leading))
    if all(_is_array(p) for p in leading):
        return _gather_rows(x, parts)
    places = _numbers(x.shape)[tuple(parts)]
    if places.size == 0:
        return _same_kind(x, np.zeros(places.shape, np.float32))
    return F.gather_nd(F.reshape(x, (-1,)), _same_kind(x, places[None]))


def setitem(x: Any, key: Any, value: Any) -> None:
    """`x[key] = value`: an NdArray is written at once; a Variable gets a function that writes as its parent."""
    if value is None:  # NumPy would write NaN
        expected = "an array of numbers or a number"
        raise ArgumentTypeError(message("__setitem__", "value", expected, describe(value)))
    parts = _parts(key)
    if isinstance(x, NdArray):
        parts = [np.asarray(p) if isinstance(p, Variable) else p for p in parts]
        x.data[tuple(_whole(p) for p in parts)] = np.asarray(value) if isinstance(value, (NdArray, Variable)) else value
        return
    if any(isinstance(p, Variable) for p in parts):
        _scatter(x, _graph_indices(x, parts), value)
        return
    places = _numbers(x.shape)[tuple(parts)]
    if x.ndim == 0:
        from . import functions as F

        replace(x, F.where(F.constant(1, ()), F.reshape(as_variable(value), ()), x))
    elif places.size or not x.size:
        _scatter(x, as_variable(np.stack(np.unravel_index(places, x.shape)).astype(np.int64)), value)
    else:  # nothing is written, yet the variable has a parent, whatever the data
        from . import functions as F

        replace(x, F.identity(x))


def _scatter(x: Variable, indices: Variable, value: Any) -> None:
    """Write `value`, broadcast, to the coordinates."""
    from . import functions as F

    shape = indices.shape[1:] + x.shape[indices.shape[0] :]
    v = as_variable(value)
    if v.shape != shape:
        surplus = max(v.ndim - len(shape), 0)
        if any(n != 1 for n in v.shape[:surplus]):
            raise ArgumentTypeError(message("__setitem__", "value", f"a shape that broadcasts to {shape}", v.shape))
        v = F.reshape(v, (1,) * (len(shape) - v.ndim) + v.shape[surplus:])
        v = v if v.shape == shape else F.broadcast(v, shape)
    if not shape:
        indices, v = F.reshape(indices, (*indices.shape, 1)), F.reshape(v, (1,))
    try:
        new = F.scatter_nd(v, indices, x.shape, x)
    except GraphError as error:  # which names a function that nobody called
        expected = "a Variable that no function has read, whose gradient would read what is written now"
        hint = "x.d[key] = value writes without the graph"
        raise GraphError(message("__setitem__", "x", expected, hint=hint)) from error
    replace(x, new)


def _parts(key: Any) -> list[Any]:
    """The parts of a key; NumPy can index with each of them, but for Variables of numbers."""
    return [_checked(p) for p in (key if isinstance(key, tuple) else (key,))]


def _checked(part: Any) -> Any:
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, (Variable, NdArray)) and part._is_comparison:
        hint = "x.d > 0 is a NumPy mask that can; nnrs.functions.where chooses within a graph"
        raise ArgumentTypeError(message("indexing", "key", "something else than a comparison of arrays", None, hint))
    if isinstance(part, Variable):
        return np.asarray(part.data.data) if part.data.dtype == np.bool_ else part
    if isinstance(part, (list, np.ndarray, NdArray)):
        a = np.asarray(part)
        a = a.astype(np.int64) if a.size == 0 or isinstance(part, NdArray) else a
        return _integer(a) if a.ndim == 0 else _whole(a)
    return _integer(part)


def _whole(a: Any) -> Any:
    """An array of indices: whole numbers or booleans."""
    if isinstance(a, np.ndarray) and a.dtype.kind not in "biu":
        if a.dtype.kind != "f":
            raise ArgumentTypeError(message("indexing", "key", "whole numbers or booleans", f"{a.dtype} array"))
        return a.astype(np.int64)
    return a


def _integer(part: Any) -> int:
    try:
        return operator.index(part)
    except TypeError:
        expected = "integers, slices, '...', None and integer or boolean arrays"
        raise ArgumentTypeError(message("indexing", "key", expected, describe(part))) from None


def _is_array(part: Any) -> bool:
    return isinstance(part, (np.ndarray, Variable))


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    """The offset of each element."""
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


def _same_kind(x: Any, values: np.ndarray) -> Any:
    return as_variable(values) if isinstance(x, Variable) else NdArray.from_numpy_array(values)


def _wrong(expected: str, actual: str) -> OutOfBoundsError:
    return OutOfBoundsError(message("x[key]", "key", expected, actual))


def _gather_rows(x: Any, parts: list[Any]) -> Any:
    """Rows picked by leading arrays, with None before and between."""
    from . import functions as F

    indices: list[np.ndarray] = []
    axes = 0
    for p in (p for p in parts if p is not None):
        if p.dtype == bool and p.shape != x.shape[axes : axes + p.ndim]:
            raise _wrong(f"a boolean array of shape {x.shape[axes : axes + p.ndim]}", f"shape {p.shape}")
        indices += list(np.nonzero(p)) if p.dtype == bool else [p.astype(np.int64)]
        axes = len(indices)
    if axes > x.ndim:
        raise _wrong(f"at most {x.ndim} indices, one for each axis", str(axes))
    for axis, (index, n) in enumerate(zip(indices, x.shape, strict=False)):
        if index.size and not -n <= index.min() <= index.max() < n:
            raise _wrong(f"indices from {-n} to {n - 1} along axis {axis}", f"{index.min()} to {index.max()}")
    y = F.gather_nd(x, _same_kind(x, np.stack(np.broadcast_arrays(*indices))))
    return _with_new_axes(y, parts, x.ndim - axes)


def _with_new_axes(y: Any, parts: list[Any], kept: int) -> Any:
    """What arrays picked, with axes of size 1 for None where NumPy puts them; the last `kept` axes are x's."""
    from . import functions as F

    new = [p is None for p in parts]
    if not any(new):
        return y
    picked = y.ndim - kept
    first, last = new.index(False), len(new) - new[::-1].index(False)
    # Where None parts the arrays, what they picked comes first.
    before = first if not any(new[first:last]) else 0
    return F.reshape(y, (1,) * before + y.shape[:picked] + (1,) * (sum(new) - before) + y.shape[picked:])


def _graph_indices(x: Any, parts: list[Any]) -> Any:
    """Coordinates for gather_nd from Variables, which stay in the graph, and whole numbers."""
    from . import functions as F

    if not all(_is_array(p) or isinstance(p, int) for p in parts):
        hint = "index in two steps: x[:, 0:2] first, then with the Variables"
        shown = ", ".join(describe(p) if not _is_array(p) else type(p).__name__ for p in parts)
        raise UnsupportedError(message("indexing", "key", "Variables without slices beside them", shown, hint))
    kind: Any = as_variable if isinstance(x, Variable) else as_array
    if len(parts) == 1:
        return F.reshape(kind(parts[0]), (1, *parts[0].shape))
    shape = np.broadcast_shapes(*(np.shape(p) if isinstance(p, int) else p.shape for p in parts))
    whole = [kind(p if _is_array(p) else np.asarray(p)) for p in parts]
    padded = [F.reshape(p, (1,) * (len(shape) - p.ndim) + p.shape) for p in whole]
    return F.stack(*(p if p.shape == shape else F.broadcast(p, shape) for p in padded))


def _expanded(ndim: int, parts: list[Any]) -> list[Any]:
    """The key with `...` written out and the missing axes added."""
    if sum(p is Ellipsis for p in parts) > 1:
        raise _wrong("a single ellipsis ('...')", f"{sum(p is Ellipsis for p in parts)}")
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    if taken > ndim:
        raise _wrong(f"at most {ndim} indices, one for each axis", str(taken))
    fill = [slice(None)] * (ndim - taken)
    if Ellipsis in parts:
        i = parts.index(Ellipsis)
        return parts[:i] + fill + parts[i + 1 :]
    return parts + fill


def _slices(shape: tuple[int, ...], parts: list[Any]) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Arguments of F.slice, and the shape that the result takes."""
    start: list[int | None] = []
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
            places = range(*part.indices(n))
            result.append(len(places))
            stride = places.step
            start.append(_bound(part.start))
            stop.append(_bound(part.stop))
            step.append(stride)
        else:
            if not -n <= part < n:
                raise _wrong(f"an index from {-n} to {n - 1} along axis {axis}", str(part))
            start.append(part % n)
            stop.append(part % n + 1)
            step.append(1)
        axis += 1
    return tuple(start), tuple(stop), tuple(step), tuple(result)


def _bound(place: Any) -> int | None:
    """A slice's start or stop as it is recorded: as given, but within 64 bits."""
    return None if place is None else max(-(2**62), min(operator.index(place), 2**62))


def matmul(a: Any, b: Any) -> Any:
    """`a @ b`, as NumPy."""
    from . import functions as F

    if isinstance(b, np.ndarray):
        hint = "Variable.from_numpy_array and NdArray.from_numpy_array take arrays in"
        raise ArgumentTypeError(message("__matmul__", "other", "a Variable or NdArray", "a NumPy array", hint))
    if not isinstance(b, (Variable, NdArray)):
        return NotImplemented
    if isinstance(a, NdArray) or isinstance(b, NdArray):  # computed at once, all steps of it
        a, b = as_array(a), as_array(b)
    for name, v in (("self", a), ("other", b)):
        if v.ndim == 0:
            hint = "* multiplies by a number"
            raise ArgumentTypeError(message("__matmul__", name, "an array of 1 axis or more", "one of shape ()", hint))
    axis = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[axis]:
        hint = f"the last axis of {a.shape} is summed over"
        raise ShapeError(message("__matmul__", "other", f"size {a.shape[-1]} at axis {axis}", b.shape, hint))
    if b.ndim == 1:
        rows = string.ascii_uppercase[: a.ndim - 1]
        return F.einsum(a, b, equation=f"{rows}i,i->{rows}")
    if a.ndim == 1:
        matrices = string.ascii_uppercase[: b.ndim - 2]
        return F.einsum(a, b, equation=f"i,{matrices}ij->{matrices}j")
    return F.affine(a, b) if a.ndim == b.ndim == 2 else F.batch_matmul(a, b)
