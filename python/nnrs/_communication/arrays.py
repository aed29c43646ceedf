"""Arrays of the library as flat memory that collectives work on, and back.

Large arrays are used where they are. Small ones are copied into one piece of memory that stays from call to call, so
that a hundred biases are one message. Half types are summed in float32 and rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import NdArray
from .reductions import Scratch

LARGE = 1 << 15
"""From this many numbers on, two copies cost more than a message of its own."""

Group = list[NdArray]


def sum_type(array: NdArray) -> np.dtype[Any]:
    """The type in which an array is summed."""
    dtype = array.dtype
    return np.dtype(np.float32) if dtype in ("bfloat16", np.float16) else np.dtype(dtype)


def described(arrays: Sequence[NdArray]) -> str:
    """Types and shapes, as processes compare them."""
    return ", ".join(f"{a.dtype}{a.shape}" for a in arrays)


def distinct(arrays: Sequence[NdArray]) -> Group:
    """Each array once: a sum that is made twice is another one."""
    return list(dict.fromkeys(arrays))


def groups(arrays: Sequence[NdArray], inplace: bool = False) -> list[Group]:
    """What goes together: small arrays of one type, each of the others alone; empty ones are left out.

    Args:
        arrays: What a collective is called with.
        inplace: Whether no array shall be copied to others.
    """
    alone, packed = [], {}  # type: tuple[list[Group], dict[Any, Group]]
    for a in distinct(arrays):
        if not a.size:
            continue
        if inplace or a.size >= LARGE:
            alone.append([a])
        else:
            packed.setdefault(sum_type(a), []).append(a)
    return [*packed.values(), *alone]


def load(
    group: Group, scratch: Scratch, scale: float = 1.0, use: str = "packed"
) -> tuple[np.ndarray, Callable[[], None]]:
    """The numbers of a group, all times `scale`, as one flat array, and what puts them back.

    The flat array is the memory of the array itself where there is only one, of the type to sum in; else a piece of
    scratch memory of that use.
    """
    dtype = sum_type(group[0])
    own = group[0].data if len(group) == 1 and group[0].dtype == dtype else None
    if own is not None and own.flags.c_contiguous and own.flags.writeable:
        flat = own.reshape(-1)
        _scale(flat, scale)
        return flat, lambda: None
    flat = scratch(use, dtype, sum(a.size for a in group))
    for a, part in zip(group, parts(group, flat), strict=True):
        np.copyto(part, values(a))
    _scale(flat, scale)
    return flat, lambda: store(group, flat)


def parts(group: Group, flat: np.ndarray) -> list[np.ndarray]:
    """The piece of `flat` that each array has."""
    ends = np.cumsum([a.size for a in group]).tolist()
    return [flat[end - a.size : end] for a, end in zip(group, ends, strict=True)]


def store(group: Group, flat: np.ndarray) -> None:
    """Put the numbers back, rounded to each array's type."""
    for a, part in zip(group, parts(group, flat), strict=True):
        write(a, part)


def write(array: NdArray, values: np.ndarray) -> None:
    """Give an array of any type these values; it keeps its type and its address."""
    with _quiet():
        if array.dtype == "bfloat16":
            rounded = NdArray.from_numpy_array(values.astype(np.float32).reshape(array.shape))
            rounded.cast("bfloat16")
            np.copyto(array.get_data("rw"), rounded.get_data("r"))
        else:
            np.copyto(array.data, values.reshape(array.shape), casting="unsafe")


def values(array: NdArray) -> np.ndarray:
    """The numbers of an array, flat and to be read only; reading `data` would make bfloat16 float32."""
    found = array.get_data("r").reshape(-1)
    if array.dtype == "bfloat16":  # which NumPy gives as two bytes: the upper ones of a float32
        return (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return found


def _scale(flat: np.ndarray, scale: float) -> None:
    if scale != 1:
        with _quiet():
            np.multiply(flat, scale, out=flat, casting="unsafe")


def _quiet() -> np.errstate:
    """Infinities and NaN are results as any other: as an error of one process they would end all."""
    return np.errstate(all="ignore")
