"""Arrays of the library as flat memory that collectives work on, and back.

Large arrays are used where they are. Small ones are copied into one piece of memory that stays from call to call, so
that a hundred biases are one message. Half types are summed in float32 and rounded once, at the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._core import NdArray
from .._errors import ArgumentError, message
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


class Places:
    """Arrays, to be found by their memory: a gradient has views, of other shapes or of a part."""

    def __init__(self, arrays: Iterable[NdArray]) -> None:
        self._parts: defaultdict[int, list[tuple[int, int, NdArray]]] = defaultdict(list)
        for array in arrays:
            memory, first, end = array._place
            if first < end:
                self._parts[memory].append((first, end, array))
        for parts in self._parts.values():
            parts.sort(key=lambda part: (part[0], -part[1]))

    def distinct(self, here: str, argument: str) -> set[NdArray]:
        """Those that are no part of another one, and the first of those that are the same part.

        Raises:
            ArgumentError: Of two arrays each has what the other has not.
        """
        kept = set()
        for parts in self._parts.values():
            last, reached = parts[0], -1
            for part in parts:
                if last[0] < part[0] < reached < part[1]:
                    expected = "arrays of which none shares a part of its memory alone with another one"
                    shapes = f"ones of shapes {last[2].shape} and {part[2].shape} that overlap"
                    raise ArgumentError(message(here, argument, expected, shapes))
                if part[1] > reached:
                    kept.add(part[2])
                    last, reached = part, part[1]
        return kept

    def meeting(self, array: NdArray) -> Iterator[NdArray]:
        """Those that share memory with an array, where none shares any with another one of them."""
        memory, first, end = array._place
        parts = self._parts.get(memory, ())
        for begin, _, found in parts[bisect_right(parts, first, key=lambda part: part[1]) :]:
            if begin >= end or first == end:
                return
            yield found


def distinct(here: str, argument: str, arrays: Iterable[NdArray]) -> Group:
    """The arrays without those that are part of others: a sum that is made twice is another one.

    Raises:
        ArgumentError: As `Places.distinct`.
    """
    once = dict.fromkeys(arrays)
    kept = Places(once).distinct(here, argument)
    return [a for a in once if a in kept or not a.size]


def groups(arrays: Sequence[NdArray], inplace: bool = False) -> list[Group]:
    """What goes together: small arrays of one type, each of the others alone; empty ones are left out.

    Args:
        arrays: What a collective is called with; distinct ones.
        inplace: Whether no array shall be copied to others.
    """
    alone, packed = [], {}  # type: tuple[list[Group], dict[Any, Group]]
    for a in arrays:
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
