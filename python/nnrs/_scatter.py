"""`scatter_nd` with NNabla's order of arguments, which puts an input after an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from . import _core
from ._core import NdArray, Variable

A = TypeVar("A", Variable, NdArray)
_SCATTER = _core.function_index("scatter_nd")


def scatter_nd(
    data: A,
    indices: A,
    shape: Sequence[int] | None = None,
    out: A | None = None,
    add: bool = False,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> A:
    """Write data to coordinates, `y[indices[0, i], indices[1, i], ..] = data[i]`; the last of equal ones counts.

    Args:
        data: N-D array of shape indices.shape[1:] + shape[M:].
        indices: Coordinates, of shape (M, ..); those below 0 count from the end.
        shape: Shape of the result; None: of `out`.
        out: What the result is elsewhere. Zeros by default.
        add: Add to what is there instead of writing over it.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of `shape`.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> values, places = A([7, 8]), A([[0, 1], [2, 0]])
    >>> print(F.scatter_nd(values, places, shape=(2, 3)).data)
    [[0. 0. 7.]
     [8. 0. 0.]]
    """
    return cast(A, _core.call(_SCATTER, (data, indices, out), (shape, add), n_outputs, outputs))
