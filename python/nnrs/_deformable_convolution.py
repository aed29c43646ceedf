"""`deformable_convolution` with its optional inputs in any combination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ._core import NdArray, Variable

A = TypeVar("A", Variable, NdArray)


def deformable_convolution(
    x: A,
    weight: A,
    offset: A,
    mask: A | None = None,
    bias: A | None = None,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    group: int = 1,
    deformable_group: int = 1,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> A:
    """Convolution of images whose kernels read each element at a distance from its usual place.

    Between elements images are read linearly, beyond them are zeros (Dai et al., Deformable Convolutional Networks,
    2017). With a mask what is read is multiplied (Zhu et al., Deformable ConvNets v2, 2018).

    Args:
        x: Images of shape (N, C, H, W); (N, H, W, C) if channel_last.
        weight: Kernels of shape (O, C / group, kernel..); (O, kernel.., C / group) if channel_last.
        offset: Distances in elements of shape (N, deformable_group * 2 * kernel elements, H, W), vertical and
            horizontal by turns; (N, H, W, ..) if channel_last. The window at p has those at p * stride.
        mask: Factors of shape (N, deformable_group * kernel elements, H, W), likewise, or None.
        bias: Bias of shape (O,), or None.
        base_axis: Axis of the channels: 1.
        pad: Zeros on both ends of each spatial axis; None: no padding.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are convolved apart.
        deformable_group: Number of groups of channels with distances of their own.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (N, O, new H, new W); channels last if channel_last.

    Raises:
        ValueError: For shapes or arguments that do not fit.

    Example:
        >>> import nnrs
        >>> x, w, offset = nnrs.Variable((8, 3, 5, 5)), nnrs.Variable((4, 3, 3, 3)), nnrs.Variable((8, 18, 5, 5))
        >>> nnrs.functions.deformable_convolution(x, w, offset, pad=(1, 1)).shape
        (8, 4, 5, 5)
    """
    from . import functions as F

    first: Any = bias if mask is None else mask
    second: Any = None if mask is None else bias
    where = (base_axis, pad, stride, dilation, group, deformable_group, channel_last)
    made: A = F._deformable_convolution(x, weight, offset, first, second, *where, n_outputs, outputs)
    return made
