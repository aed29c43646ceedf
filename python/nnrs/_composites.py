"""Functions of the library that are written in Python, in terms of the registered ones."""

from __future__ import annotations

from typing import Any

from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, describe, message
from ._normalization import batch_normalization, layer_normalization

__all__ = ["batch_normalization", "clip_by_value", "layer_normalization"]

# NNabla's functions that are still to come.
LATER = ""


def clip_by_value(x: Any, min: Any, max: Any) -> Any:
    """Clip to a range, `minimum(maximum(x, min), max)`.

    Args:
        x: N-D array.
        min: Lower bound: number, Variable or NdArray of a shape that broadcasts with x.
        max: Upper bound, likewise.

    Raises:
        TypeError: For bounds of another type.
    """
    from . import functions as F

    def bounded(value: Any, bound: Any, name: str, two: Any, scalar: Any) -> Any:
        if isinstance(bound, (Variable, NdArray)):
            return two(value, bound)
        if isinstance(bound, (int, float)):
            return scalar(value, bound)
        raise ArgumentTypeError(message("clip_by_value", name, "a Variable, NdArray or number", describe(bound)))

    lower = bounded(x, min, "min", F.maximum2, F.maximum_scalar)
    return bounded(lower, max, "max", F.minimum2, F.minimum_scalar)
