"""Functions whose results have as many elements as the data says: the data is read when they are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import Context, NdArray, Variable
from ._errors import check_flag
from ._modes import context_scope, get_current_context

__all__ = ["nonzero", "onnx_non_max_suppression", "pack_padded_sequence", "pad_packed_sequence", "unique"]


def _numbers(x: Any) -> np.ndarray:
    return np.asarray(x) if isinstance(x, (Variable, NdArray)) else np.zeros(0)


def _computed(x: Any) -> np.ndarray:
    """The numbers as the kernel has them: in the type that the context computes in, on a GPU in that of its arrays."""
    data, backend = _numbers(x), get_current_context().backend[0]
    kind = _type_config()
    if kind != "double" and (kind == "float" or not backend.startswith(("cuda", "cudnn"))):
        kind = "float32"
    wanted = {"double": "float64", "half": "float16"}.get(kind, kind)
    return data if data.dtype == wanted else NdArray.from_numpy_array(data).cast(wanted)


def _whole(v: Any) -> int:
    """A number as a whole one of 63 bits; what is none or too large is found when the function looks at the data."""
    return int(np.clip(np.nan_to_num(np.float64(v)), 0, 2**62))


def nonzero(x: Any, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """The places where x is not zero, in their order. No gradient.

    How many there are is read from x's data when this is called, so that in a static graph it must be there by
    then; an x with another number of places later is an error.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Indices, of shape (number of x's axes, places).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[0, 5], [7, 0]])
    >>> print(F.nonzero(x).data)
    [[0 1]
     [1 0]]
    """
    from . import functions as F

    return F._nonzero(x, int(np.count_nonzero(_computed(x))), n_outputs, outputs)


def unique(
    x: Any,
    flatten: bool = True,
    axis: int | None = None,
    sorted: bool = True,
    with_index: bool = False,
    with_inverse: bool = False,
    with_counts: bool = False,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """The different elements of an array, or its different slices along an axis. NaN counts as equal to NaN. No
    gradient.

    How many there are is read from x's data when this is called, so that in a static graph it must be there by
    then; an x with another number of them later is an error.

    Args:
        x: N-D array.
        flatten: Look at elements; if not, at slices along `axis`.
        axis: The axis; may count from the end. None: elements are looked at in any case.
        sorted: Sort them; if not, they come as they first occur.
        with_index: Also give where each occurs first.
        with_inverse: Also give, for each element or slice of x, its number among the different ones.
        with_counts: Also give how often each occurs.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The different elements or slices; or a list of them and what else is asked for.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([3, 1, 3, 2])
    >>> y, counts = F.unique(x, with_counts=True)
    >>> print(y.data)
    [1. 2. 3.]
    >>> print(counts.data)
    [1 1 2]
    """
    from . import functions as F

    data = _computed(x)
    if check_flag("unique", "flatten", flatten) or axis is None:
        count = np.unique(data).size
    else:
        count = _slices(data, axis)
    return F._unique(x, flatten, axis, sorted, with_index, with_inverse, with_counts, count, n_outputs, outputs)


def _slices(data: np.ndarray, axis: Any) -> int:
    """The number of different slices; NaN equals NaN, and 0 equals -0. 0 for what is no axis: the function says so."""
    if not isinstance(axis, (int, np.integer)) or not -data.ndim <= axis < data.ndim:
        return 0
    n = data.shape[axis]
    rows = np.moveaxis(data, axis, 0).reshape(n, data.size // n if n else 0) + 0
    return len({np.where(row == row, row, np.nan).tobytes() for row in rows})


def pack_padded_sequence(
    padded_sequence: Any,
    lengths: Any,
    batch_first: bool = False,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Pack sequences of several lengths: without padding, the first steps of all, then all second ones and so on.

    The sum of the lengths is read when this is called, so that in a static graph they must be there by then;
    lengths with another sum later are an error.

    Args:
        padded_sequence: Sequences, of shape (T, B, ..), or (B, T, ..) if batch_first.
        lengths: Their lengths, from the longest down: of shape (B,).
        batch_first: Whether the first axis is that of the sequences.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        pack_sequence: Array of shape (sum of lengths, ..).
        batch_sizes: How many sequences have each step: of shape (T,).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, lengths = A([[1, 4], [2, 5], [3, 0]]), A([3, 2])
    >>> rows, sizes = F.pack_padded_sequence(x, lengths)
    >>> print(rows.data)
    [1. 4. 2. 5. 3.]
    >>> print(sizes.data)
    [2 2 1]
    """
    from . import functions as F

    rows = _whole(np.nansum(_numbers(lengths)))
    return F._pack_padded_sequence(padded_sequence, lengths, batch_first, rows, n_outputs, outputs)


def pad_packed_sequence(
    packed_sequence: Any,
    batch_sizes: Any,
    batch_first: bool = False,
    padding_value: float | None = None,
    total_length: int | None = None,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Undo `pack_padded_sequence`.

    The number of sequences, the first of `batch_sizes`, is read when this is called, so that in a static graph
    it must be there by then.

    Args:
        packed_sequence: Packed sequences, of shape (sum of batch_sizes, ..).
        batch_sizes: How many sequences have each step, from the most down: of shape (T,).
        batch_first: Whether the first axis of the result is that of the sequences.
        padding_value: What stands behind the end of a sequence; None: 0.
        total_length: Steps of the result, if more than T.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        padded_sequence: Sequences, of shape (T, B, ..), or (B, T, ..) if batch_first.
        lengths: Their lengths: of shape (B,).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> rows, sizes = A([1, 4, 2, 5, 3]), A([2, 2, 1])
    >>> x, lengths = F.pad_packed_sequence(rows, sizes)
    >>> print(x.data)
    [[1. 4.]
     [2. 5.]
     [3. 0.]]
    >>> print(lengths.data)
    [3 2]
    """
    from . import functions as F

    sizes = _numbers(batch_sizes).reshape(-1)
    sequences = _whole(sizes[0]) if sizes.size else 0
    args = (batch_first, padding_value, total_length, sequences, n_outputs, outputs)
    return F._pad_packed_sequence(packed_sequence, batch_sizes, *args)


def onnx_non_max_suppression(
    boxes: Any,
    scores: Any,
    center_point_box: int | None = None,
    max_output_boxes_per_class: int | None = None,
    iou_threshold: float | None = None,
    score_threshold: float | None = None,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """The boxes that are left of each class when those that overlap better ones are suppressed, from the best on. No
    gradient.

    How many there are is found when this is called, so that in a static graph boxes and scores must be there by
    then; data of which another number is left later is an error.

    Args:
        boxes: Boxes of shape (B, N, 4).
        scores: Scores of shape (B, C, N).
        center_point_box: 0: boxes are two corners, y1, x1, y2, x2; 1: center and size, x, y, w, h. None: 0.
        max_output_boxes_per_class: How many are left of a class at most; None: 0.
        iou_threshold: A box is suppressed if the area of both together is more than this part of that of either;
            None: 0.
        score_threshold: The least score; None: 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Rows of batch, class and box: of shape (boxes that are left, 3).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> boxes = A([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [5, 5, 6, 6]]])
    >>> scores = A([[[0.9, 0.8, 0.7]]])
    >>> print(F.onnx_non_max_suppression(boxes, scores, 0, 3, 0.5, 0.0).data)
    [[0 0 0]
     [0 0 2]]
    """
    from . import functions as F

    args = (center_point_box, max_output_boxes_per_class, iou_threshold, score_threshold)
    with context_scope(Context([f"cpu:{_type_config()}"], "CpuCachedArray", "0")):
        found = F._onnx_non_max_suppression(_copy(boxes), _copy(scores), *args, rows=-1)
    rows = int((found.data[:, 0] != 2**64 - 1).sum())
    return F._onnx_non_max_suppression(boxes, scores, *args, rows, n_outputs, outputs)


def _copy(x: Any) -> Any:
    """The numbers as they are now; what is no array as it is, so that the function says so."""
    return NdArray.from_numpy_array(_numbers(x)) if isinstance(x, (Variable, NdArray)) else x


def _type_config() -> str:
    """The current context's: how many are left may depend on it."""
    return get_current_context().backend[0].partition(":")[2] or "float"
