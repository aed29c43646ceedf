"""The function library. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501, F405
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

from . import _composites, _core
from ._calls import checked as _checked
from ._composites import *  # noqa: F403
from ._core import NdArray, Variable

_call = _core.call
_index = _core.function_index

# All inputs of a call are Variables, or all are NdArrays; so are its outputs.
A = TypeVar("A", Variable, NdArray)


_AFFINE = _index('affine')


@_checked
def affine(x: A, weight: A, bias: A | None = None, base_axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Fully connected layer, `y = x A + b`: the axes of `x` from `base_axis` on are taken as one vector.

    Args:
        x: Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.
        weight: Weight of shape (D_B * .. * D_N, L_0, .., L_I).
        bias: Bias of shape (L_0, .., L_I).
        base_axis: First axis that belongs to the vector; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Output of shape (M_0, .., M_{B-1}, L_0, .., L_I).

    Raises:
        ValueError: For shapes that do not fit, or a base_axis beyond x's axes.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2]])
    >>> w = A([[1, 0, 1], [0, 1, 1]])
    >>> print(F.affine(x, w).data)
    [[1. 2. 3.]]
    """
    return _call(_AFFINE, (x, weight, bias), (base_axis,), n_outputs, outputs)


_RNN = _index('rnn')


def _rnn(x: A, h: A, weight_l0: A, weight: A | None = None, bias: A | None = None, num_layers: int = 1, nonlinearity: str = 'tanh', dropout: float | None = None, bidirectional: bool = False, training: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Recurrent layers (Elman, 1990), `h = tanh(W x + U h_before + b)` at each step.

    Args:
        x: Sequences of shape (steps, batch, inputs).
        h: States before the first step, of shape (layers, directions, batch, hidden).
        weight_l0: Weights of the first layer, of shape (directions, hidden, inputs + hidden): columns for x,
            then for h.
        weight: Weights of the other layers, of shape (layers - 1, directions, hidden, directions * hidden +
            hidden); None if there is one layer.
        bias: Biases of shape (layers, directions, hidden).
        num_layers: Layers, of which each has the one before as its input.
        nonlinearity: 'tanh' or 'relu'.
        dropout: Share of the numbers between layers that are dropped in training; None: 0.
        bidirectional: Whether each layer goes through the steps in both directions.
        training: Whether there is dropout, and a gradient.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).
        h_n: States after the last step, of h's shape.
    """
    return _call(_RNN, (x, h, weight_l0, weight, bias), (num_layers, nonlinearity, dropout, bidirectional, training), n_outputs, outputs)


_LSTM = _index('lstm')


def _lstm(x: A, h: A, c: A, weight_l0: A, weight: A | None = None, bias: A | None = None, num_layers: int = 1, dropout: float | None = None, bidirectional: bool = False, training: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Recurrent layers with long short-term memory (Hochreiter and Schmidhuber, 1997). With `a = W x + U h_before + b` for each of the
     gates i, f, n, o: `c = sigmoid(f) c_before + sigmoid(i) tanh(n)`, `h = sigmoid(o) tanh(c)`.

    Args:
        x: Sequences of shape (steps, batch, inputs).
        h: States before the first step, of shape (layers, directions, batch, hidden).
        c: States c before the first step, of h's shape.
        weight_l0: Weights of the first layer, of shape (directions, 4, hidden, inputs + hidden): columns for x,
            then for h.
        weight: Weights of the other layers, of shape (layers - 1, directions, 4, hidden, directions * hidden +
            hidden); None if there is one layer.
        bias: Biases of shape (layers, directions, 4, hidden).
        num_layers: Layers, of which each has the one before as its input.
        dropout: Share of the numbers between layers that are dropped in training; None: 0.
        bidirectional: Whether each layer goes through the steps in both directions.
        training: Whether there is dropout, and a gradient.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).
        h_n: States after the last step, of h's shape.
        c_n: States c after the last step, of c's shape.
    """
    return _call(_LSTM, (x, h, c, weight_l0, weight, bias), (num_layers, dropout, bidirectional, training), n_outputs, outputs)


_GRU = _index('gru')


def _gru(x: A, h: A, weight_l0: A, weight: A | None = None, bias: A | None = None, num_layers: int = 1, dropout: float | None = None, bidirectional: bool = False, training: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Recurrent layers of gated units (Cho et al., 2014). Of the gates r, z, n: `r = sigmoid(W_r x + U_r h_before + b_r)`, z likewise,
     `n = tanh(W_n x + b_n + r (U_n h_before + b_h))`, `h = (1 - z) n + z h_before`. The biases are b_r, b_z, b_n, b_h.

    Args:
        x: Sequences of shape (steps, batch, inputs).
        h: States before the first step, of shape (layers, directions, batch, hidden).
        weight_l0: Weights of the first layer, of shape (directions, 3, hidden, inputs + hidden): columns for x,
            then for h.
        weight: Weights of the other layers, of shape (layers - 1, directions, 3, hidden, directions * hidden +
            hidden); None if there is one layer.
        bias: Biases of shape (layers, directions, 4, hidden).
        num_layers: Layers, of which each has the one before as its input.
        dropout: Share of the numbers between layers that are dropped in training; None: 0.
        bidirectional: Whether each layer goes through the steps in both directions.
        training: Whether there is dropout, and a gradient.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).
        h_n: States after the last step, of h's shape.
    """
    return _call(_GRU, (x, h, weight_l0, weight, bias), (num_layers, dropout, bidirectional, training), n_outputs, outputs)


_BATCH_MATMUL = _index('batch_matmul')


@_checked
def batch_matmul(a: A, b: A, transpose_a: bool = False, transpose_b: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Matrix product over the last two axes; leading axes broadcast.

    Args:
        a: N-D array, N >= 2: matrices (.., M, K), or (.., K, M) if transposed.
        b: N-D array, N >= 2: matrices (.., K, N), or (.., N, K) if transposed.
        transpose_a: Transpose the matrices of a.
        transpose_b: Transpose the matrices of b.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Products (.., M, N).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1, 2], [3, 4]]), A([[1, 10], [1, 1]])
    >>> print(F.batch_matmul(a, b).data)
    [[ 3. 12.]
     [ 7. 34.]]
    >>> print(F.batch_matmul(a, b, transpose_b=True).data)
    [[21.  3.]
     [43.  7.]]
    """
    return _call(_BATCH_MATMUL, (a, b), (transpose_a, transpose_b), n_outputs, outputs)


_CONVOLUTION = _index('convolution')


@_checked
def convolution(x: A, weight: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Convolution (a cross-correlation, to be exact) over any number of spatial axes:
     `y[n, o, p] = sum over c, k of w[o, c, k] x[n, c, p * stride + k * dilation - pad] + b[o]`.
     Spatial sizes become `(size + 2 pad - dilation (kernel - 1) - 1) // stride + 1`.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes; (.., spatial.., C) if channel_last.
        weight: Kernels of shape (O, C / group, kernel..); (O, kernel.., C / group) if channel_last.
        bias: Bias of shape (O,).
        base_axis: Number of leading axes that only repeat the convolution; may count from the end.
        pad: Zeros on both ends of each spatial axis; None: no padding.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are convolved apart.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., O, new spatial..); channels last if channel_last.

    Raises:
        ValueError: For pad, stride or dilation of another number of axes, a base_axis or group that does not
            fit, a kernel larger than x.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[[1, 2, 4, 8]]]), A([[[1, -1]]])
    >>> print(F.convolution(x, w).data)
    [[[-1. -2. -4.]]]
    >>> F.convolution(x, w, pad=(1,), stride=(2,)).shape
    (1, 1, 3)
    """
    return _call(_CONVOLUTION, (x, weight, bias), (base_axis, pad, stride, dilation, group, channel_last), n_outputs, outputs)


_DECONVOLUTION = _index('deconvolution')


@_checked
def deconvolution(x: A, weight: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, output_padding: Sequence[int] | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Transposed convolution (Zeiler et al., 2010): each element of x adds its multiple of the kernel to y. It is what carries a gradient back
     through a convolution with the same arguments.
     Spatial sizes become `stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad + output_padding`.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes; (.., spatial.., C) if channel_last.
        weight: Kernels of shape (C, O / group, kernel..); (C, kernel.., O / group) if channel_last.
        bias: Bias of shape (O,).
        base_axis: Number of leading axes that only repeat the deconvolution; may count from the end.
        pad: What is cut off both ends of each spatial axis of y; None: nothing.
        stride: Distance in y of neighbours in x on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are treated apart.
        channel_last: Whether the channels are the last axis.
        output_padding: Added to the end of each spatial axis of y, less than stride; None: 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., O, new spatial..); channels last if channel_last.

    Raises:
        ValueError: For pad, stride, dilation or output_padding of another number of axes, an output_padding
            that is not below stride.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[[1, 2]]]), A([[[1, 10]]])
    >>> print(F.deconvolution(x, w).data)
    [[[ 1. 12. 20.]]]
    >>> print(F.deconvolution(x, w, stride=(2,)).data)
    [[[ 1. 10.  2. 20.]]]
    """
    return _call(_DECONVOLUTION, (x, weight, bias), (base_axis, pad, stride, dilation, group, channel_last, output_padding), n_outputs, outputs)


_DEFORMABLE_CONVOLUTION = _index('deformable_convolution')


def _deformable_convolution(x: A, weight: A, offset: A, mask: A | None = None, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, deformable_group: int = 1, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Convolution of images whose kernels read each element at a distance from its usual place, between elements linearly (Dai et
     al., Deformable Convolutional Networks, 2017), and times a mask (Zhu et al., Deformable ConvNets v2, 2018).

    Args:
        x: Images of shape (N, C, H, W); (N, H, W, C) if channel_last.
        weight: Kernels of shape (O, C / group, kernel..); (O, kernel.., C / group) if channel_last.
        offset: Distances in elements of shape (N, deformable_group 2 kernel elements, H, W), vertical and
            horizontal by turns; (N, H, W, ..) if channel_last. Those of a window are where it begins if there
            is no padding, at p * stride.
        mask: Factors of shape (N, deformable_group kernel elements, H, W); (N, H, W, ..) if channel_last.
        bias: Bias of shape (O,).
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
    """
    return _call(_DEFORMABLE_CONVOLUTION, (x, weight, offset, mask, bias), (base_axis, pad, stride, dilation, group, deformable_group, channel_last), n_outputs, outputs)


_ADAPTIVE_SEPARABLE_CONVOLUTION = _index('adaptive_separable_convolution')


@_checked
def adaptive_separable_convolution(x: A, vertical_kernel: A, horizontal_kernel: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Convolution of images with a kernel of its own at each place, the product of a column and a row (Niklaus et al., Video Frame
     Interpolation via Adaptive Separable Convolution, 2017).

    Args:
        x: Images of shape (N, C, H, W).
        vertical_kernel: Columns of shape (N, Kv, H', W'), H' and W' from the result's sizes on to the images'.
        horizontal_kernel: Rows of shape (N, Kh, H', W'), likewise.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (N, C, H - Kv + 1, W - Kh + 1).

    Raises:
        ValueError: For shapes that do not fit.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A(np.arange(16).reshape(1, 1, 4, 4))
    >>> v, h = A(np.ones((1, 2, 3, 3))), A(np.full((1, 2, 3, 3), 0.5))
    >>> print(F.adaptive_separable_convolution(x, v, h).data)
    [[[[ 5.  7.  9.]
       [13. 15. 17.]
       [21. 23. 25.]]]]
    """
    return _call(_ADAPTIVE_SEPARABLE_CONVOLUTION, (x, vertical_kernel, horizontal_kernel), (), n_outputs, outputs)


_DEPTHWISE_CONVOLUTION = _index('depthwise_convolution')


@_checked
def depthwise_convolution(x: A, weight: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, multiplier: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Convolution of each channel for itself, with one kernel or more (Chollet, Xception, 2016).
     Spatial sizes become `(size + 2 pad - dilation (kernel - 1) - 1) // stride + 1`.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes.
        weight: Kernels of shape (C multiplier, kernel..); those of a channel follow each other.
        bias: Bias of shape (C multiplier,).
        base_axis: Number of leading axes that only repeat the convolution; may count from the end.
        pad: Zeros on both ends of each spatial axis; None: no padding.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        multiplier: Maps that are made of each channel.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., C multiplier, new spatial..).

    Raises:
        ValueError: For a multiplier below 1, or pad, stride or dilation of another number of axes.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[[1, 2, 3], [1, 2, 3]]]), A([[1, 1], [1, -1]])
    >>> print(F.depthwise_convolution(x, w).data)
    [[[ 3.  5.]
      [-1. -1.]]]
    """
    return _call(_DEPTHWISE_CONVOLUTION, (x, weight, bias), (base_axis, pad, stride, dilation, multiplier), n_outputs, outputs)


_DEPTHWISE_DECONVOLUTION = _index('depthwise_deconvolution')


@_checked
def depthwise_deconvolution(x: A, weight: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, divisor: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Transposed depthwise convolution: each map of the result is the sum of what `divisor` channels that follow each other add to it.
     Spatial sizes become `stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad`.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes.
        weight: Kernels of shape (C, kernel..).
        bias: Bias of shape (C / divisor,).
        base_axis: Number of leading axes that only repeat the deconvolution; may count from the end.
        pad: What is cut off both ends of each spatial axis of y; None: nothing.
        stride: Distance in y of neighbours in x on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        divisor: Channels that are summed to a map.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., C / divisor, new spatial..).

    Raises:
        ValueError: For a divisor that the channels cannot be divided by.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[[1, 2], [1, 2]]]), A([[1, 10], [1, -1]])
    >>> print(F.depthwise_deconvolution(x, w).data)
    [[[ 1. 12. 20.]
      [ 1.  1. -2.]]]
    """
    return _call(_DEPTHWISE_DECONVOLUTION, (x, weight, bias), (base_axis, pad, stride, dilation, divisor), n_outputs, outputs)


_MAX_POOLING = _index('max_pooling')


@_checked
def max_pooling(x: A, kernel: Sequence[int], stride: Sequence[int] | None = None, ignore_border: bool = True, pad: Sequence[int] | None = None, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Largest number of each window over the last two or three axes; NaN if there is one. Padding never wins; of equal
     numbers the first one gets the gradient.

    Args:
        x: N-D array; its last axes (before the channels, if channel_last) are pooled.
        kernel: Sizes of the window, for 2 or 3 axes.
        stride: Distance of windows; None: the kernel's sizes.
        ignore_border: Leave out windows that reach over the far border; if not, they are cut.
        pad: Padding on both ends of each axis; None: none.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Maxima, of shape (.., H', W'): an element for each place of the kernel.

    Raises:
        ValueError: For kernel, stride or pad of another number of axes, a kernel below 1, or a pad that is not
            smaller than it.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[1, 5, 2], [3, 4, 0], [7, 6, 8]]])
    >>> print(F.max_pooling(x, (2, 2), stride=(1, 1)).data)
    [[[5. 5.]
      [7. 8.]]]
    """
    return _call(_MAX_POOLING, (x,), (kernel, stride, ignore_border, pad, channel_last), n_outputs, outputs)


_AVERAGE_POOLING = _index('average_pooling')


@_checked
def average_pooling(x: A, kernel: Sequence[int], stride: Sequence[int] | None = None, ignore_border: bool = True, pad: Sequence[int] | None = None, channel_last: bool = False, including_pad: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Mean of each window over the last two or three axes.

    Args:
        x: N-D array; its last axes (before the channels, if channel_last) are pooled.
        kernel: Sizes of the window, for 2 or 3 axes.
        stride: Distance of windows; None: the kernel's sizes.
        ignore_border: Leave out windows that reach over the far border; if not, they are cut.
        pad: Padding with zeros on both ends of each axis; None: none.
        channel_last: Whether the channels are the last axis.
        including_pad: Whether padding counts as zeros.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Means, of shape (.., H', W'): an element for each place of the kernel.

    Raises:
        ValueError: For kernel, stride or pad of another number of axes, a kernel below 1, or a pad that is not
            smaller than it.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[1, 5, 2, 2], [3, 3, 0, 4]]])
    >>> print(F.average_pooling(x, (2, 2)).data)
    [[[3. 2.]]]
    """
    return _call(_AVERAGE_POOLING, (x,), (kernel, stride, ignore_border, pad, channel_last, including_pad), n_outputs, outputs)


_SUM_POOLING = _index('sum_pooling')


@_checked
def sum_pooling(x: A, kernel: Sequence[int], stride: Sequence[int] | None = None, ignore_border: bool = True, pad: Sequence[int] | None = None, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sum of each window over the last two or three axes.

    Args:
        x: N-D array; its last axes (before the channels, if channel_last) are pooled.
        kernel: Sizes of the window, for 2 or 3 axes.
        stride: Distance of windows; None: the kernel's sizes.
        ignore_border: Leave out windows that reach over the far border; if not, they are cut.
        pad: Padding with zeros on both ends of each axis; None: none.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Sums, of shape (.., H', W'): an element for each place of the kernel.

    Raises:
        ValueError: For kernel, stride or pad of another number of axes, or a kernel below 1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[1, 5, 2, 2], [3, 3, 0, 4]]])
    >>> print(F.sum_pooling(x, (2, 2)).data)
    [[[12.  8.]]]
    """
    return _call(_SUM_POOLING, (x,), (kernel, stride, ignore_border, pad, channel_last), n_outputs, outputs)


_GLOBAL_AVERAGE_POOLING = _index('global_average_pooling')


@_checked
def global_average_pooling(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Mean over all axes after the first two.

    Args:
        x: Array of shape (N, C, ..).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape (N, C, 1, 1).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[[1, 2], [3, 4]], [[0, 0], [0, 8]]]])
    >>> print(F.global_average_pooling(x)[0, :, 0, 0].data)
    [2.5 2. ]
    """
    return _call(_GLOBAL_AVERAGE_POOLING, (x,), (), n_outputs, outputs)


_UNPOOLING = _index('unpooling')


@_checked
def unpooling(x: A, kernel: Sequence[int], channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Repeats each element over a window: `y[k i + j] = x[i]` for `0 <= j < k` along each of the last axes.

    Args:
        x: N-D array; its last axes (before the channels, if channel_last) are unpooled.
        kernel: Sizes of the window.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array; the sizes of its last axes are those of x times the kernel's.

    Raises:
        ValueError: For a kernel of more axes than x, or below 1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[1, 2]]])
    >>> print(F.unpooling(x, (2, 2)).data)
    [[[1. 1. 2. 2.]
      [1. 1. 2. 2.]]]
    """
    return _call(_UNPOOLING, (x,), (kernel, channel_last), n_outputs, outputs)


_ROI_ALIGN = _index('roi_align')


@_checked
def roi_align(input: A, boxes: A, output_size: Sequence[int], spatial_scale: Sequence[float] = (1.0, 1.0), sampling_ratio: int | None = None, channel_last: bool | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Boxes of images, cut into bins of which each is the mean of samples of the image, interpolated between its elements (He et
     al., Mask R-CNN, 2017). Elements have their middles at 1/2; beyond the image by more than half an element all is 0.

    Args:
        input: Images of shape (N, C, H, W); (N, H, W, C) if channel_last.
        boxes: Boxes of shape (K, 5), as (number of the image, x1, y1, x2, y2). They get no gradient.
        output_size: Bins of a box: rows and columns.
        spatial_scale: Elements that a unit of the boxes is: vertically and horizontally.
        sampling_ratio: Samples of a bin along an axis; None, or 0 or less: as many as it has elements.
        channel_last: Whether the channels are the last axis; None: no.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Means of shape (K, C, rows, columns); (K, rows, columns, C) if channel_last.

    Raises:
        ValueError: For a box of no image (on a GPU: NaN), or an output_size that is not two numbers of 1 or
            more.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A(np.arange(16).reshape(1, 1, 4, 4))
    >>> boxes = A([[0, 0, 0, 4, 4]])
    >>> print(F.roi_align(x, boxes, (2, 2)).data)
    [[[[ 2.5  4.5]
       [10.5 12.5]]]]
    """
    return _call(_ROI_ALIGN, (input, boxes), (output_size, spatial_scale, sampling_ratio, channel_last), n_outputs, outputs)


_MAX_POOLING_BACKWARD = _index('max_pooling_backward')


@_checked
def max_pooling_backward(dy: A, x: A, kernel: Sequence[int], stride: Sequence[int] | None = None, ignore_border: bool = True, pad: Sequence[int] | None = None, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Gradient of `max_pooling`: each number of dy goes to the place of the maximum of its window in x.

    Args:
        dy: Gradient of the pooling's result, of its shape.
        x: What was pooled, an array (.., H, W).
        kernel: As max_pooling's.
        stride: As max_pooling's.
        ignore_border: As max_pooling's.
        pad: As max_pooling's.
        channel_last: As max_pooling's.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        dx: Gradient of x, of its shape.

    Raises:
        ValueError: For another shape of dy than the pooling's result, and as of `max_pooling`.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, gy = A([[[1, 5], [3, 4]]]), A([[[10]]])
    >>> print(F.max_pooling_backward(gy, x, (2, 2)).data)
    [[[ 0. 10.]
      [ 0.  0.]]]
    """
    return _call(_MAX_POOLING_BACKWARD, (dy, x), (kernel, stride, ignore_border, pad, channel_last), n_outputs, outputs)


_EMBED = _index('embed')


@_checked
def embed(x0: A, w: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Looks up rows: `y[i] = w[x0[i]]`. The gradient of w sums over repeated indices.

    Args:
        x0: N-D array of row numbers, from 0 to the number of rows less 1.
        w: Table of shape (rows, ..).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x0's shape and then a row's.

    Raises:
        ValueError: For an index that w has no row for (on a GPU: NaN).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> words, w = A([2, 0, 2]), A([[0, 1], [10, 11], [20, 21]])
    >>> print(F.embed(words, w).data)
    [[20. 21.]
     [ 0.  1.]
     [20. 21.]]
    """
    return _call(_EMBED, (x0, w), (), n_outputs, outputs)


_SIGMOID = _index('sigmoid')


@_checked
def sigmoid(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Logistic sigmoid, `y = 1 / (1 + exp(-x))`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.sigmoid(x).data.round(3))
    [0.269 0.5   0.731]
    """
    return _call(_SIGMOID, (x,), (), n_outputs, outputs)


_SWISH = _index('swish')


@_checked
def swish(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Swish or SiLU, `y = x sigmoid(x)` (Ramachandran et al., 2017).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.swish(x).data.round(3))
    [-0.269  0.     0.731]
    """
    return _call(_SWISH, (x,), (), n_outputs, outputs)


_TANH = _index('tanh')


@_checked
def tanh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Hyperbolic tangent, `y = tanh(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.tanh(x).data.round(3))
    [-0.762  0.     0.762]
    """
    return _call(_TANH, (x,), (), n_outputs, outputs)


_RELU = _index('relu')


@_checked
def relu(x: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Rectified linear unit, `y = max(x, 0)` (Nair and Hinton, 2010); 0 where x is NaN.

    Args:
        x: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.relu(x).data)
    [0. 0. 1.]
    """
    return _call(_RELU, (x,), (inplace,), n_outputs, outputs)


_LEAKY_RELU = _index('leaky_relu')


@_checked
def leaky_relu(x: A, alpha: float = 0.1, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Leaky rectified linear unit, `y = max(x, 0) + alpha min(x, 0)` (Maas et al., 2013).

    Args:
        x: N-D array.
        alpha: Slope for negative values.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.leaky_relu(x, alpha=0.5).data)
    [-0.5  0.   1. ]
    """
    return _call(_LEAKY_RELU, (x,), (alpha, inplace), n_outputs, outputs)


_SOFTMAX = _index('softmax')


@_checked
def softmax(x: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Softmax, `y = exp(x) / sum(exp(x))` along an axis, without overflow.

    Args:
        x: N-D array, N > 0.
        axis: Axis of the sum; None: the last one. May count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[0, 0], [0, 1]])
    >>> print(F.softmax(x).data.round(3))
    [[0.5   0.5  ]
     [0.269 0.731]]
    """
    return _call(_SOFTMAX, (x,), (axis,), n_outputs, outputs)


_LOG_SOFTMAX = _index('log_softmax')


@_checked
def log_softmax(x: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Logarithm of softmax, `y = x - log(sum(exp(x)))` along an axis, without overflow.

    Args:
        x: N-D array, N > 0.
        axis: Axis of the sum; None: the last one. May count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[0, 0], [0, 1]])
    >>> print(F.log_softmax(x).data.round(3))
    [[-0.693 -0.693]
     [-1.313 -0.313]]
    """
    return _call(_LOG_SOFTMAX, (x,), (axis,), n_outputs, outputs)


_ELU = _index('elu')


@_checked
def elu(x: A, alpha: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Exponential linear unit, `y = x` where `x >= 0`, else `alpha (exp(x) - 1)` (Clevert et al., 2016).

    Args:
        x: N-D array.
        alpha: Minus the limit for very negative x.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.elu(x, alpha=2).data.round(3))
    [-1.264  0.     1.   ]
    """
    return _call(_ELU, (x,), (alpha,), n_outputs, outputs)


_SELU = _index('selu')


@_checked
def selu(x: A, scale: float = 1.05070098735548, alpha: float = 1.673263242354377, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Scaled exponential linear unit, `y = scale x` where `x > 0`, else `scale alpha (exp(x) - 1)` (Klambauer et al.,
     2017).

    Args:
        x: N-D array.
        scale: Slope for positive values.
        alpha: Minus the limit for very negative x, before scaling.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.selu(x).data.round(3))
    [-1.111  0.     1.051]
    """
    return _call(_SELU, (x,), (scale, alpha), n_outputs, outputs)


_CRELU = _index('crelu')


@_checked
def crelu(x: A, axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Concatenated rectified linear units, `relu(x)` and `relu(-x)` along an axis (Shang et al., 2016).

    Args:
        x: N-D array.
        axis: Axis of the concatenation; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array, twice as long as x on the axis.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[-1, 2]])
    >>> print(F.crelu(x).data)
    [[0. 2. 1. 0.]]
    """
    return _call(_CRELU, (x,), (axis,), n_outputs, outputs)


_CELU = _index('celu')


@_checked
def celu(x: A, alpha: float = 1.0, axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Concatenated exponential linear units, `elu(x)` and `elu(-x)` along an axis (Clevert et al., 2016; Shang et al., 2016).

    Args:
        x: N-D array.
        alpha: Minus the limit of each half.
        axis: Axis of the concatenation; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array, twice as long as x on the axis.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[-1, 2]])
    >>> print(F.celu(x).data.round(3))
    [[-0.632  2.     1.    -0.865]]
    """
    return _call(_CELU, (x,), (alpha, axis), n_outputs, outputs)


_PRELU = _index('prelu')


@_checked
def prelu(x0: A, x1: A, base_axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Parametric rectified linear unit, `y = max(x0, 0) + x1 min(x0, 0)` with learned slopes x1 (He et al., 2015).

    Args:
        x0: N-D array.
        x1: Slopes: one for all, or one for each place of the axis base_axis.
        base_axis: Axis of the slopes; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x0's shape.

    Raises:
        ValueError: For a base_axis that x0 does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, slopes = A([[-1, 2, -3]]), A([0.1, 0.2, 0.3])
    >>> print(F.prelu(x, slopes).data.round(3))
    [[-0.1  2.  -0.9]]
    """
    return _call(_PRELU, (x0, x1), (base_axis,), n_outputs, outputs)


_GELU = _index('gelu')


@_checked
def gelu(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Gaussian error linear unit by its tanh formula, `y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`
     (Hendrycks and Gimpel, 2016).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.gelu(x).data.round(3))
    [-0.159  0.     0.841]
    """
    return _call(_GELU, (x,), (), n_outputs, outputs)


_MISH = _index('mish')


@_checked
def mish(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Mish, `y = x tanh(log(1 + exp(x)))` (Misra, 2019).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.mish(x).data.round(3))
    [-0.303  0.     0.865]
    """
    return _call(_MISH, (x,), (), n_outputs, outputs)


_RELU6 = _index('relu6')


@_checked
def relu6(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Rectified linear unit that ends at 6, `y = min(max(x, 0), 6)` (Krizhevsky, 2010).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 3, 9])
    >>> print(F.relu6(x).data)
    [0. 3. 6.]
    """
    return _call(_RELU6, (x,), (), n_outputs, outputs)


_HARD_SIGMOID = _index('hard_sigmoid')


@_checked
def hard_sigmoid(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Piecewise linear sigmoid, `y = 0.2 x + 0.5` cut to 0 .. 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-3, 0, 1])
    >>> print(F.hard_sigmoid(x).data)
    [0.  0.5 0.7]
    """
    return _call(_HARD_SIGMOID, (x,), (), n_outputs, outputs)


_HARD_TANH = _index('hard_tanh')


@_checked
def hard_tanh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Piecewise linear tanh, x cut to -1 .. 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-3, 0.5, 3])
    >>> print(F.hard_tanh(x).data)
    [-1.   0.5  1. ]
    """
    return _call(_HARD_TANH, (x,), (), n_outputs, outputs)


_LOG_SIGMOID = _index('log_sigmoid')


@_checked
def log_sigmoid(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Logarithm of the sigmoid, `y = -log(1 + exp(-x))`, without overflow.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.log_sigmoid(x).data.round(3))
    [-1.313 -0.693 -0.313]
    """
    return _call(_LOG_SIGMOID, (x,), (), n_outputs, outputs)


_SOFTPLUS = _index('softplus')


@_checked
def softplus(x: A, beta: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Softplus, `y = log(1 + exp(beta x)) / beta`: a smooth `relu`.

    Args:
        x: N-D array.
        beta: Sharpness of the bend.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.softplus(x).data.round(3))
    [0.313 0.693 1.313]
    """
    return _call(_SOFTPLUS, (x,), (beta,), n_outputs, outputs)


_SOFTSIGN = _index('softsign')


@_checked
def softsign(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Softsign, `y = x / (1 + |x|)`: between -1 and 1 like `tanh`, with slower tails (Glorot and Bengio, 2010).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 3])
    >>> print(F.softsign(x).data)
    [-0.5   0.    0.75]
    """
    return _call(_SOFTSIGN, (x,), (), n_outputs, outputs)


_TANH_SHRINK = _index('tanh_shrink')


@_checked
def tanh_shrink(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Tanh shrink, `y = x - tanh(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.tanh_shrink(x).data.round(3))
    [-0.238  0.     0.238]
    """
    return _call(_TANH_SHRINK, (x,), (), n_outputs, outputs)


_SINC = _index('sinc')


@_checked
def sinc(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Unnormalized sinc, `y = sin(x) / x`, 1 at 0.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 1, 2])
    >>> print(F.sinc(x).data.round(3))
    [1.    0.841 0.455]
    """
    return _call(_SINC, (x,), (), n_outputs, outputs)


_BINARY_SIGMOID = _index('binary_sigmoid')


@_checked
def binary_sigmoid(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where `x > 0`, else 0. The gradient is that of a straight line, `gy / 2` where `|x| < 1`, else 0 (Courbariaux et
     al., 2016).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.binary_sigmoid(x).data)
    [0. 0. 1.]
    """
    return _call(_BINARY_SIGMOID, (x,), (), n_outputs, outputs)


_BINARY_TANH = _index('binary_tanh')


@_checked
def binary_tanh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where `x > 0`, else -1. The gradient is that of a straight line, `gy` where `|x| < 1`, else 0 (Courbariaux et al.,
     2016).

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.binary_tanh(x).data)
    [-1. -1.  1.]
    """
    return _call(_BINARY_TANH, (x,), (), n_outputs, outputs)


_BATCH_NORMALIZATION = _index('batch_normalization')


def _batch_normalization(x: A, beta: A | None = None, gamma: A | None = None, mean: A | None = None, variance: A | None = None, axes: Sequence[int] = (1,), decay_rate: float = 0.9, eps: float = 1e-5, batch_stat: bool = True, no_scale: bool = False, no_bias: bool = False, output_stat: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Batch normalization (Ioffe and Szegedy, 2015): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean
     and a variance for each index of `axes`. With batch_stat they are those of x, and every forward pass moves the
     running ones: `mean = decay_rate mean + (1 - decay_rate) batch mean`, the variance likewise by the unbiased one.

    Args:
        x: N-D array.
        beta: Shift, of x's size at `axes` and size 1 elsewhere; left out if no_bias.
        gamma: Scale, of beta's shape; left out if no_scale.
        mean: Running mean, of beta's shape.
        variance: Running variance, of beta's shape.
        axes: Axes with statistics of their own; the others are averaged over.
        decay_rate: How much of the running statistics each forward pass keeps.
        eps: Added to the variance.
        batch_stat: Normalize by the statistics of x (training), not by the running ones.
        no_scale: There is no gamma.
        no_bias: There is no beta.
        output_stat: Give mean and biased variance of the batch, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.
        statistics: With output_stat: mean and variance of the batch, of mean's shape.
    """
    return _call(_BATCH_NORMALIZATION, (x, beta, gamma, mean, variance), (axes, decay_rate, eps, batch_stat, no_scale, no_bias, output_stat), n_outputs, outputs)


_LAYER_NORMALIZATION = _index('layer_normalization')


def _layer_normalization(x: A, beta: A | None = None, gamma: A | None = None, batch_axis: int | Sequence[int] = (0,), eps: float = 1e-5, no_scale: bool = False, no_bias: bool = False, output_stat: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Layer normalization (Ba et al., 2016): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with mean and
     variance over all axes but the batch axes.

    Args:
        x: N-D array.
        beta: Shift, of x's size but 1 at the batch axes; left out if no_bias.
        gamma: Scale, of beta's shape; left out if no_scale.
        batch_axis: Axes that number the samples; they may count from the end.
        eps: Added to the variance.
        no_scale: There is no gamma.
        no_bias: There is no beta.
        output_stat: Give mean and biased variance, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.
        statistics: With output_stat: mean and variance of the samples, of size 1 beside the batch axes.
    """
    return _call(_LAYER_NORMALIZATION, (x, beta, gamma), (batch_axis, eps, no_scale, no_bias, output_stat), n_outputs, outputs)


_GROUP_NORMALIZATION = _index('group_normalization')


def _group_normalization(x: A, beta: A | None = None, gamma: A | None = None, num_groups: int = 1, channel_axis: int = 1, batch_axis: int | Sequence[int] = (0,), eps: float = 1e-5, no_scale: bool = False, no_bias: bool = False, output_stat: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Group normalization (Wu and He, 2018): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean and a
     variance for each group of neighbouring channels of each sample.

    Args:
        x: N-D array.
        beta: Shift, of x's size at the channel axis and size 1 elsewhere; left out if no_bias.
        gamma: Scale, of beta's shape; left out if no_scale.
        num_groups: Number of groups, a divisor of the number of channels.
        channel_axis: Axis of the channels; may count from the end.
        batch_axis: Axes that number the samples; they may count from the end.
        eps: Added to the variance.
        no_scale: There is no gamma.
        no_bias: There is no beta.
        output_stat: Give mean and biased variance, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.
        statistics: With output_stat: mean and variance of the groups, of x's shape with the channel axis cut
            into (num_groups, 1) and size 1 at all axes that are not batch axes.
    """
    return _call(_GROUP_NORMALIZATION, (x, beta, gamma), (num_groups, channel_axis, batch_axis, eps, no_scale, no_bias, output_stat), n_outputs, outputs)


_INSTANCE_NORMALIZATION = _index('instance_normalization')


def _instance_normalization(x: A, beta: A | None = None, gamma: A | None = None, channel_axis: int = 1, batch_axis: int | Sequence[int] = (0,), eps: float = 1e-5, no_scale: bool = False, no_bias: bool = False, output_stat: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Instance normalization (Ulyanov et al., 2016): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean and a
     variance for each channel of each sample.

    Args:
        x: N-D array.
        beta: Shift, of x's size at the channel axis, and at the batch axes x's size or 1, and size 1 elsewhere;
            left out if no_bias.
        gamma: Scale, of beta's shape; left out if no_scale.
        channel_axis: Axis of the channels; may count from the end.
        batch_axis: Axes that number the samples; they may count from the end.
        eps: Added to the variance.
        no_scale: There is no gamma.
        no_bias: There is no beta.
        output_stat: Give mean and biased variance, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.
        statistics: With output_stat: mean and variance, of x's size at batch and channel axes and size 1
            elsewhere.
    """
    return _call(_INSTANCE_NORMALIZATION, (x, beta, gamma), (channel_axis, batch_axis, eps, no_scale, no_bias, output_stat), n_outputs, outputs)


_TENSOR_NORMALIZATION = _index('tensor_normalization')


def _tensor_normalization(x: A, beta: A | None = None, gamma: A | None = None, axes: Sequence[int] = (1,), eps: float = 1e-5, no_scale: bool = False, no_bias: bool = False, output_stat: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Normalization with a mean and a variance for each index of `axes`:
     `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        x: N-D array.
        beta: Shift, of x's size at `axes` and size 1 elsewhere; left out if no_bias.
        gamma: Scale, of beta's shape; left out if no_scale.
        axes: Axes with statistics of their own; the others are averaged over.
        eps: Added to the variance.
        no_scale: There is no gamma.
        no_bias: There is no beta.
        output_stat: Give mean and biased variance, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.
        statistics: With output_stat: mean and variance, of x's size at axes and size 1 elsewhere.
    """
    return _call(_TENSOR_NORMALIZATION, (x, beta, gamma), (axes, eps, no_scale, no_bias, output_stat), n_outputs, outputs)


_WEIGHT_STANDARDIZATION = _index('weight_standardization')


def _weight_standardization(w: A, channel_axis: int = 0, eps: float = 1e-5, output_stat: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Weight standardization (Qiao et al., 2019): `y = (w - mean) / sqrt(variance + eps)`, with a mean and a variance for each
     output channel.

    Args:
        w: Weight, an N-D array.
        channel_axis: Axis of the output channels; may count from the end.
        eps: Added to the variance.
        output_stat: Give mean and biased variance, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of w's shape.
        statistics: With output_stat: mean and variance, of w's size at channel_axis and size 1 elsewhere.
    """
    return _call(_WEIGHT_STANDARDIZATION, (w,), (channel_axis, eps, output_stat), n_outputs, outputs)


_NORM_NORMALIZATION = _index('norm_normalization')


def _norm_normalization(x: A, p: float | None = None, axes: Sequence[int] | None = None, eps: float = 1e-12, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """An array over its p-norms, `y = x / (sum |x|^p + eps)^(1/p)`; for `p = inf` it is `x / (max |x| + eps)`.

    Args:
        x: N-D array.
        p: Order of the norm, 1 or more; None: 2.
        axes: Axes that a norm is over; None: all. They may count from the end.
        eps: Added before the root.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_NORM_NORMALIZATION, (x,), (p, axes, eps), n_outputs, outputs)


_WEIGHT_NORMALIZATION = _index('weight_normalization')


@_checked
def weight_normalization(w: A, g: A, dim: int = 0, eps: float = 1e-12, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Weight normalization (Salimans and Kingma, 2016): `y = g w / sqrt(sum w^2 + eps)`, with a norm for each index of `dim`.

    Args:
        w: Weight, an N-D array.
        g: Scale of shape (w.shape[dim],).
        dim: Axis with norms of its own (that of the outputs); may count from the end.
        eps: Added before the root.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        w_wn: N-D array of w's shape.

    Raises:
        ValueError: For a dim that w does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> w, g = A([[3, 4], [0, 2]]), A([10, 1])
    >>> print(F.weight_normalization(w, g).data)
    [[6. 8.]
     [0. 1.]]
    """
    return _call(_WEIGHT_NORMALIZATION, (w, g), (dim, eps), n_outputs, outputs)


_SPECTRAL_NORM = _index('spectral_norm')


def _spectral_norm(w: A, u: A, dim: int = 0, itr: int = 1, eps: float = 1e-12, test: bool = False, output_u: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Spectral normalization (Miyato et al., 2018): w over its spectral norm `s = u' W v`, where W is w with the axis `dim` first
     and all others as one, and u and v come from `itr` steps `v = unit(W' u)`, `u = unit(W v)`,
     `unit(a) = a / sqrt(|a|^2 + eps)`. Gradients take u and v as constants.

    Args:
        w: Weight, an N-D array.
        u: What the iteration begins with, of shape (w.shape[dim],). Unless test, each forward pass writes the
            last u to it.
        dim: Axis of the outputs.
        itr: Steps of the iteration, 1 to 10000.
        eps: Added before the root.
        test: Leave u as it is.
        output_u: Give the u that the iteration has begun with, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        w_sn: N-D array of w's shape.
        u: With output_u the u that the iteration has begun with, of its shape.
    """
    return _call(_SPECTRAL_NORM, (w, u), (dim, itr, eps, test, output_u), n_outputs, outputs)


_MEAN_SUBTRACTION = _index('mean_subtraction')


@_checked
def mean_subtraction(x: A, mean: A, t: A, base_axis: int = 1, update_running_mean: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Subtracts the running mean of all samples so far: `mean += (batch mean - mean) / (t + 1)`, `t += 1`, `y = x - mean`.
    
     The gradient is NNabla's approximation, `gx = (1 - 1 / (t samples)) gy`.

    Args:
        x: N-D array.
        mean: Running mean, of shape x.shape[base_axis:]. Each forward pass moves it.
        t: Number of batches that it is of, an array of one element. Each forward pass counts it up.
        base_axis: The axes before it number the samples; it may count from the end.
        update_running_mean: Move mean and t; if not, they are only read.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For a base_axis that x does not have, or t of more than one element.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 6]])
    >>> mean, t = A([0.0, 0.0]), A([0.0])
    >>> print(F.mean_subtraction(x, mean, t).data)
    [[-1. -2.]
     [ 1.  2.]]
    >>> print(mean.data)
    [2. 4.]
    """
    return _call(_MEAN_SUBTRACTION, (x, mean, t), (base_axis, update_running_mean), n_outputs, outputs)


_CLIP_GRAD_BY_VALUE = _index('clip_grad_by_value')


@_checked
def clip_grad_by_value(x: A, min: A, max: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x itself; its gradient is clipped, `gx = minimum(maximum(gy, min), max)`.

    Args:
        x: N-D array.
        min: Least gradient: an array that broadcasts to x's shape. It has no gradient.
        max: Largest gradient, of x's shape likewise.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x itself, of its shape.

    Raises:
        ValueError: For min or max of another shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> V = nn.Variable.from_numpy_array
    >>> x = V([1, 2, 3], need_grad=True)
    >>> y = F.clip_grad_by_value(x, V([-1, -1, -1]), V([1, 1, 1])) * 4
    >>> y.forward()
    >>> y.backward()
    >>> print(x.g)
    [1. 1. 1.]
    """
    return _call(_CLIP_GRAD_BY_VALUE, (x, min, max), (), n_outputs, outputs)


_CLIP_GRAD_BY_NORM = _index('clip_grad_by_norm')


@_checked
def clip_grad_by_norm(x: A, clip_norm: float | None = None, axes: Sequence[int] | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x itself; its gradient is scaled to a given norm (Pascanu et al., 2013), `gx = clip_norm gy / |gy|`, also where its own is less. A gradient of
     zeros stays.

    Args:
        x: N-D array.
        clip_norm: The Euclidean norm that the gradient gets; None: 1.
        axes: The axes to take the norm over; None: all. They may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x itself, of its shape.

    Raises:
        ValueError: For axes that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> V = nn.Variable.from_numpy_array
    >>> x = V([1, 2], need_grad=True)
    >>> y = F.clip_grad_by_norm(x, clip_norm=5) * V([30, 40])
    >>> y.forward()
    >>> y.backward()
    >>> print(x.g)
    [3. 4.]
    """
    return _call(_CLIP_GRAD_BY_NORM, (x,), (clip_norm, axes), n_outputs, outputs)


_SUM = _index('sum')


@_checked
def sum(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sum over axes.

    Args:
        x: N-D array.
        axis: Axes to sum over; None: all. They may count from the end.
        keepdims: Whether the summed axes stay, with size 1.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x without the summed axes.

    Raises:
        ValueError: For axes that x does not have or that occur twice.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> print(F.sum(x, axis=0).data)
    [4. 6.]
    >>> print(F.sum(x).data)
    10.0
    """
    return _call(_SUM, (x,), (axis, keepdims), n_outputs, outputs)


_MEAN = _index('mean')


@_checked
def mean(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Mean over axes. The mean of no elements is NaN.

    Args:
        x: N-D array.
        axis: Axes to average over; None: all. They may count from the end.
        keepdims: Whether the averaged axes stay, with size 1.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x without the averaged axes.

    Raises:
        ValueError: For axes that x does not have or that occur twice.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 6]])
    >>> print(F.mean(x, axis=1, keepdims=True).data)
    [[1.5]
     [4.5]]
    """
    return _call(_MEAN, (x,), (axis, keepdims), n_outputs, outputs)


_MAX = _index('max')


@overload
def max(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, with_index: Literal[False] = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A: ...


@overload
def max(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any: ...


@_checked
def max(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Largest element over axes.
     NaN is left out, unless there is nothing else. Of equal elements the first one counts, and gets all the gradient.

    Args:
        x: N-D array.
        axis: Axes to look over; None: all. They may count from the end.
        keepdims: Whether the reduced axes stay, with size 1.
        with_index: Also give the index of the element.
        only_index: Give the index alone.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Largest elements, or [largest elements, indices], or indices: flat over the reduced axes in their
            order.

    Raises:
        ValueError: For axes that x does not have or that occur twice, or no element along them.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 5], [7, 3]])
    >>> y, i = F.max(x, axis=1, with_index=True)
    >>> print(y.data)
    [5. 7.]
    >>> print(i.data)
    [1 0]
    """
    return _call(_MAX, (x,), (axis, keepdims, with_index, only_index), n_outputs, outputs)


_MIN = _index('min')


@overload
def min(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, with_index: Literal[False] = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A: ...


@overload
def min(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any: ...


@_checked
def min(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Smallest element over axes.
     NaN is left out, unless there is nothing else. Of equal elements the first one counts, and gets all the gradient.

    Args:
        x: N-D array.
        axis: Axes to look over; None: all. They may count from the end.
        keepdims: Whether the reduced axes stay, with size 1.
        with_index: Also give the index of the element.
        only_index: Give the index alone.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Smallest elements, or [smallest elements, indices], or indices: flat over the reduced axes in their
            order.

    Raises:
        ValueError: For axes that x does not have or that occur twice, or no element along them.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 5], [7, 3]])
    >>> print(F.min(x, axis=1).data)
    [1. 3.]
    """
    return _call(_MIN, (x,), (axis, keepdims, with_index, only_index), n_outputs, outputs)


_NORM = _index('norm')


@_checked
def norm(x: A, p: float | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """p-norm over axes, `y = (sum |x|^p)^(1/p)`; for `p = inf` the largest `|x|`.
    
     Powers are made in x's type: where all of them underflow (float32, p = 2: `|x|` under 1e-22), y is 0 and its gradients
     are infinite or NaN, as in NNabla. Second derivatives are differences of terms of the size of `1 / y`, exact to a few units
     in the last place of these; at `x = 0` they are infinite for p between 1 and 2.

    Args:
        x: N-D array.
        p: Order of the norm, 1 or more; None: 2.
        axis: Axes to reduce; None: all. They may count from the end.
        keepdims: Whether the reduced axes stay, with size 1.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x without the reduced axes.

    Raises:
        ValueError: For axes that x does not have or that occur twice, or a p below 1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[3, 4], [6, 8]])
    >>> print(F.norm(x, axis=1).data)
    [ 5. 10.]
    >>> print(F.norm(x, p=1).data)
    21.0
    """
    return _call(_NORM, (x,), (p, axis, keepdims), n_outputs, outputs)


_PROD = _index('prod')


@_checked
def prod(x: A, axis: int | Sequence[int] | None = None, keepdims: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Product over axes. The product of no elements is 1.

    Args:
        x: N-D array.
        axis: Axes to multiply over; None: all. They may count from the end.
        keepdims: Whether the reduced axes stay, with size 1.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x without the reduced axes.

    Raises:
        ValueError: For axes that x does not have or that occur twice.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> print(F.prod(x, axis=1).data)
    [ 2. 12.]
    """
    return _call(_PROD, (x,), (axis, keepdims), n_outputs, outputs)


_REDUCE_SUM = _index('reduce_sum')


@_checked
def reduce_sum(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sum of all elements; `sum` without arguments.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape ().

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> print(F.reduce_sum(x).data)
    10.0
    """
    return _call(_REDUCE_SUM, (x,), (), n_outputs, outputs)


_REDUCE_MEAN = _index('reduce_mean')


@_checked
def reduce_mean(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Mean of all elements; `mean` without arguments.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape ().

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> print(F.reduce_mean(x).data)
    2.5
    """
    return _call(_REDUCE_MEAN, (x,), (), n_outputs, outputs)


_CUMSUM = _index('cumsum')


@_checked
def cumsum(x: A, axis: int | None = None, exclusive: bool = False, reverse: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cumulative sum along an axis, `y[i] = x[0] + .. + x[i]`.

    Args:
        x: N-D array.
        axis: The axis; None: 0. It may count from the end.
        exclusive: Leave each element out of its own sum: `y[0]` is 0.
        reverse: Begin at the end: `y[i]` is the sum from there down to `x[i]`.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [4, 5, 6]])
    >>> print(F.cumsum(x, axis=1).data)
    [[ 1.  3.  6.]
     [ 4.  9. 15.]]
    >>> print(F.cumsum(x, axis=1, exclusive=True, reverse=True).data)
    [[ 5.  3.  0.]
     [11.  6.  0.]]
    """
    return _call(_CUMSUM, (x,), (axis, exclusive, reverse), n_outputs, outputs)


_CUMPROD = _index('cumprod')


@_checked
def cumprod(x: A, axis: int | None = None, exclusive: bool = False, reverse: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cumulative product along an axis, `y[i] = x[0] .. x[i]`.

    Args:
        x: N-D array.
        axis: The axis; None: 0. It may count from the end.
        exclusive: Leave each element out of its own product: `y[0]` is 1.
        reverse: Begin at the end: `y[i]` is the product from there down to `x[i]`.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [4, 5, 6]])
    >>> print(F.cumprod(x, axis=1).data)
    [[  1.   2.   6.]
     [  4.  20. 120.]]
    """
    return _call(_CUMPROD, (x,), (axis, exclusive, reverse), n_outputs, outputs)


_ADD2 = _index('add2')


@_checked
def add2(x0: A, x1: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sum of two arrays, `y = x0 + x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1], [2]]), A([10, 20])
    >>> print(F.add2(a, b).data)
    [[11. 21.]
     [12. 22.]]
    """
    return _call(_ADD2, (x0, x1), (inplace,), n_outputs, outputs)


_ADD_N = _index('add_n')


@_checked
def add_n(*x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sum of any number of arrays of one shape, `y = x_1 + x_2 + ...`.

    Args:
        x: N-D arrays of one shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b, c = A([1, 2]), A([10, 20]), A([100, 200])
    >>> print(F.add_n(a, b, c).data)
    [111. 222.]
    """
    return _call(_ADD_N, x, (), n_outputs, outputs)


_BC_ADD2 = _index('bc_add2')


@_checked
def bc_add2(x0: A, x1: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sum of two arrays, `y = x0 + x1`: an old name of `add2`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2]), A([10, 20])
    >>> print(F.bc_add2(a, b).data)
    [11. 22.]
    """
    return _call(_BC_ADD2, (x0, x1), (inplace,), n_outputs, outputs)


_SUB2 = _index('sub2')


@_checked
def sub2(x0: A, x1: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Difference of two arrays, `y = x0 - x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1], [2]]), A([10, 20])
    >>> print(F.sub2(a, b).data)
    [[ -9. -19.]
     [ -8. -18.]]
    """
    return _call(_SUB2, (x0, x1), (inplace,), n_outputs, outputs)


_MUL2 = _index('mul2')


@_checked
def mul2(x0: A, x1: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Product of two arrays, element by element, `y = x0 * x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1], [2]]), A([10, 20])
    >>> print(F.mul2(a, b).data)
    [[10. 20.]
     [20. 40.]]
    """
    return _call(_MUL2, (x0, x1), (inplace,), n_outputs, outputs)


_MUL_N = _index('mul_n')


@_checked
def mul_n(*x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Product of any number of arrays of one shape, element by element, `y = x_1 x_2 ...`.

    Args:
        x: N-D arrays of one shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b, c = A([1, 2]), A([10, 20]), A([100, 200])
    >>> print(F.mul_n(a, b, c).data)
    [1000. 8000.]
    """
    return _call(_MUL_N, x, (), n_outputs, outputs)


_DIV2 = _index('div2')


@_checked
def div2(x0: A, x1: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Quotient of two arrays, `y = x0 / x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1], [2]]), A([10, 20])
    >>> print(F.div2(a, b).data)
    [[0.1  0.05]
     [0.2  0.1 ]]
    """
    return _call(_DIV2, (x0, x1), (inplace,), n_outputs, outputs)


_POW2 = _index('pow2')


@_checked
def pow2(x0: A, x1: A, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Power of two arrays, `y = x0 ** x1`, as C's `pow`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[2], [3]]), A([1, 2])
    >>> print(F.pow2(a, b).data)
    [[2. 4.]
     [3. 9.]]
    """
    return _call(_POW2, (x0, x1), (inplace,), n_outputs, outputs)


_ADD_SCALAR = _index('add_scalar')


@_checked
def add_scalar(x: A, val: float = 1.0, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Adds a number, `y = x + val`.

    Args:
        x: N-D array.
        val: The number.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.add_scalar(x, 10).data)
    [11. 12.]
    """
    return _call(_ADD_SCALAR, (x,), (val, inplace), n_outputs, outputs)


_MUL_SCALAR = _index('mul_scalar')


@_checked
def mul_scalar(x: A, val: float = 1.0, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Multiplies by a number, `y = x * val`.

    Args:
        x: N-D array.
        val: The number.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.mul_scalar(x, 10).data)
    [10. 20.]
    """
    return _call(_MUL_SCALAR, (x,), (val, inplace), n_outputs, outputs)


_POW_SCALAR = _index('pow_scalar')


@_checked
def pow_scalar(x: A, val: float = 1.0, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Raises to a power, `y = x ** val`.

    Args:
        x: N-D array.
        val: The number.
        inplace: Ignored: nnrs reuses the buffer where that cannot be observed.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.pow_scalar(x, 2).data)
    [1. 4. 9.]
    """
    return _call(_POW_SCALAR, (x,), (val, inplace), n_outputs, outputs)


_R_SUB_SCALAR = _index('r_sub_scalar')


@_checked
def r_sub_scalar(x: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Subtracts from a number, `y = val - x`.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.r_sub_scalar(x, 10).data)
    [9. 8.]
    """
    return _call(_R_SUB_SCALAR, (x,), (val,), n_outputs, outputs)


_R_DIV_SCALAR = _index('r_div_scalar')


@_checked
def r_div_scalar(x: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Divides a number, `y = val / x`.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.r_div_scalar(x, 10).data)
    [10.  5.]
    """
    return _call(_R_DIV_SCALAR, (x,), (val,), n_outputs, outputs)


_R_POW_SCALAR = _index('r_pow_scalar')


@_checked
def r_pow_scalar(x: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Raises a number to powers, `y = val ** x`.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.r_pow_scalar(x, 2).data)
    [2. 4.]
    """
    return _call(_R_POW_SCALAR, (x,), (val,), n_outputs, outputs)


_MOD2 = _index('mod2')


@_checked
def mod2(x0: A, x1: A, fmod: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The rest of a division, `y = x0 - x1 n` for a whole number n. It has the sign of x0; but if x0 holds whole numbers, and fmod is
     not set, that of x1. NaN where x1 is 0; of whole numbers, which stay what they are, 0.

    Args:
        x0: N-D array of dividends.
        x1: N-D array of divisors.
        fmod: Whether whole numbers too give the sign of x0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape; of x0's type if that is one of whole numbers.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([-5, 5, 7]), A([3, 3, 4])
    >>> print(F.mod2(a, b).data)
    [1 2 3]
    """
    return _call(_MOD2, (x0, x1), (fmod,), n_outputs, outputs)


_BIT_SHIFT = _index('bit_shift')


@_checked
def bit_shift(x: A, shift: A, direction: str = 'LEFT', n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Moves the bits of whole numbers: to the left, with zeros from the right, or the other way. Bits that leave x's type (64 bits
     where that is not one of whole numbers) are lost. No gradient.

    Args:
        x: N-D array of whole numbers.
        shift: N-D array of distances, 0 or more.
        direction: 'LEFT' or 'RIGHT'.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape, of whole numbers of x's type, or else of 64 bits.

    Raises:
        ValueError: For another direction than 'LEFT' and 'RIGHT', or a negative distance (on a GPU: 0).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, n = A([1, 2, 3]), A([1, 2, 3])
    >>> print(F.bit_shift(x, n).data)
    [ 2  8 24]
    """
    return _call(_BIT_SHIFT, (x, shift), (direction,), n_outputs, outputs)


_SIGN = _index('sign')


@_checked
def sign(x: A, alpha: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where x is positive, -1 where it is negative, alpha at 0 and NaN. The gradient passes straight through.

    Args:
        x: N-D array.
        alpha: The value at 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-3, 0, 3])
    >>> print(F.sign(x).data)
    [-1.  1.  1.]
    >>> print(F.sign(x, alpha=0).data)
    [-1.  0.  1.]
    """
    return _call(_SIGN, (x,), (alpha,), n_outputs, outputs)


_MINIMUM2 = _index('minimum2')


@_checked
def minimum2(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The smaller one of two elements; x1 where they are equal or one is NaN.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 5]), A([3, 3])
    >>> print(F.minimum2(a, b).data)
    [1. 3.]
    """
    return _call(_MINIMUM2, (x0, x1), (), n_outputs, outputs)


_MAXIMUM2 = _index('maximum2')


@_checked
def maximum2(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The larger one of two elements; x1 where they are equal or one is NaN.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 5]), A([3, 3])
    >>> print(F.maximum2(a, b).data)
    [3. 5.]
    """
    return _call(_MAXIMUM2, (x0, x1), (), n_outputs, outputs)


_MINIMUM_SCALAR = _index('minimum_scalar')


@_checked
def minimum_scalar(x: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The smaller one of x and a number; the number where x is NaN.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 5])
    >>> print(F.minimum_scalar(x, 3).data)
    [1. 3.]
    """
    return _call(_MINIMUM_SCALAR, (x,), (val,), n_outputs, outputs)


_MAXIMUM_SCALAR = _index('maximum_scalar')


@_checked
def maximum_scalar(x: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The larger one of x and a number; the number where x is NaN.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 5])
    >>> print(F.maximum_scalar(x, 3).data)
    [3. 5.]
    """
    return _call(_MAXIMUM_SCALAR, (x,), (val,), n_outputs, outputs)


_LOGICAL_AND = _index('logical_and')


@_checked
def logical_and(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Whether x0 and x1 are both true, element by element.
     1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([0, 0, 1, 1]), A([0, 1, 0, 1])
    >>> print(F.logical_and(a, b).data)
    [0. 0. 0. 1.]
    """
    return _call(_LOGICAL_AND, (x0, x1), (), n_outputs, outputs)


_LOGICAL_OR = _index('logical_or')


@_checked
def logical_or(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Whether x0 or x1 is true, element by element.
     1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([0, 0, 1, 1]), A([0, 1, 0, 1])
    >>> print(F.logical_or(a, b).data)
    [0. 1. 1. 1.]
    """
    return _call(_LOGICAL_OR, (x0, x1), (), n_outputs, outputs)


_LOGICAL_XOR = _index('logical_xor')


@_checked
def logical_xor(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Whether just one of x0 and x1 is true, element by element.
     1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([0, 0, 1, 1]), A([0, 1, 0, 1])
    >>> print(F.logical_xor(a, b).data)
    [0. 1. 1. 0.]
    """
    return _call(_LOGICAL_XOR, (x0, x1), (), n_outputs, outputs)


_EQUAL = _index('equal')


@_checked
def equal(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 == x1`, element by element.
     1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2, 3]), A([2, 2, 2])
    >>> print(F.equal(a, b).data)
    [0. 1. 0.]
    """
    return _call(_EQUAL, (x0, x1), (), n_outputs, outputs)


_NOT_EQUAL = _index('not_equal')


@_checked
def not_equal(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 != x1`, element by element.
     1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2, 3]), A([2, 2, 2])
    >>> print(F.not_equal(a, b).data)
    [1. 0. 1.]
    """
    return _call(_NOT_EQUAL, (x0, x1), (), n_outputs, outputs)


_GREATER_EQUAL = _index('greater_equal')


@_checked
def greater_equal(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 >= x1`, element by element.
     1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2, 3]), A([2, 2, 2])
    >>> print(F.greater_equal(a, b).data)
    [0. 1. 1.]
    """
    return _call(_GREATER_EQUAL, (x0, x1), (), n_outputs, outputs)


_GREATER = _index('greater')


@_checked
def greater(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 > x1`, element by element.
     1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2, 3]), A([2, 2, 2])
    >>> print(F.greater(a, b).data)
    [0. 0. 1.]
    """
    return _call(_GREATER, (x0, x1), (), n_outputs, outputs)


_LESS_EQUAL = _index('less_equal')


@_checked
def less_equal(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 <= x1`, element by element.
     1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2, 3]), A([2, 2, 2])
    >>> print(F.less_equal(a, b).data)
    [1. 1. 0.]
    """
    return _call(_LESS_EQUAL, (x0, x1), (), n_outputs, outputs)


_LESS = _index('less')


@_checked
def less(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 < x1`, element by element.
     1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2, 3]), A([2, 2, 2])
    >>> print(F.less(a, b).data)
    [1. 0. 0.]
    """
    return _call(_LESS, (x0, x1), (), n_outputs, outputs)


_LOGICAL_AND_SCALAR = _index('logical_and_scalar')


@_checked
def logical_and_scalar(x0: A, val: bool, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Whether x0 and x1 are both true, element by element.
     Here x1 is `val`. 1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.

    Args:
        x0: N-D array.
        val: The other truth.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 1, 2])
    >>> print(F.logical_and_scalar(x, True).data)
    [0. 1. 1.]
    """
    return _call(_LOGICAL_AND_SCALAR, (x0,), (val,), n_outputs, outputs)


_LOGICAL_OR_SCALAR = _index('logical_or_scalar')


@_checked
def logical_or_scalar(x0: A, val: bool, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Whether x0 or x1 is true, element by element.
     Here x1 is `val`. 1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.

    Args:
        x0: N-D array.
        val: The other truth.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 1, 2])
    >>> print(F.logical_or_scalar(x, False).data)
    [0. 1. 1.]
    """
    return _call(_LOGICAL_OR_SCALAR, (x0,), (val,), n_outputs, outputs)


_LOGICAL_XOR_SCALAR = _index('logical_xor_scalar')


@_checked
def logical_xor_scalar(x0: A, val: bool, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Whether just one of x0 and x1 is true, element by element.
     Here x1 is `val`. 1 where that is true, else 0; whatever is not 0 is true, NaN too. No gradient.

    Args:
        x0: N-D array.
        val: The other truth.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 1, 2])
    >>> print(F.logical_xor_scalar(x, True).data)
    [1. 0. 0.]
    """
    return _call(_LOGICAL_XOR_SCALAR, (x0,), (val,), n_outputs, outputs)


_EQUAL_SCALAR = _index('equal_scalar')


@_checked
def equal_scalar(x0: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 == x1`, element by element.
     Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.equal_scalar(x, 2).data)
    [0. 1. 0.]
    """
    return _call(_EQUAL_SCALAR, (x0,), (val,), n_outputs, outputs)


_NOT_EQUAL_SCALAR = _index('not_equal_scalar')


@_checked
def not_equal_scalar(x0: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 != x1`, element by element.
     Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.not_equal_scalar(x, 2).data)
    [1. 0. 1.]
    """
    return _call(_NOT_EQUAL_SCALAR, (x0,), (val,), n_outputs, outputs)


_GREATER_EQUAL_SCALAR = _index('greater_equal_scalar')


@_checked
def greater_equal_scalar(x0: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 >= x1`, element by element.
     Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.greater_equal_scalar(x, 2).data)
    [0. 1. 1.]
    """
    return _call(_GREATER_EQUAL_SCALAR, (x0,), (val,), n_outputs, outputs)


_GREATER_SCALAR = _index('greater_scalar')


@_checked
def greater_scalar(x0: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 > x1`, element by element.
     Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.greater_scalar(x, 2).data)
    [0. 0. 1.]
    """
    return _call(_GREATER_SCALAR, (x0,), (val,), n_outputs, outputs)


_LESS_EQUAL_SCALAR = _index('less_equal_scalar')


@_checked
def less_equal_scalar(x0: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 <= x1`, element by element.
     Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.less_equal_scalar(x, 2).data)
    [1. 1. 0.]
    """
    return _call(_LESS_EQUAL_SCALAR, (x0,), (val,), n_outputs, outputs)


_LESS_SCALAR = _index('less_scalar')


@_checked
def less_scalar(x0: A, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """`x0 < x1`, element by element.
     Here x1 is the number `val`. 1 where that is so, else 0; NaN compares as in IEEE 754. No gradient.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.less_scalar(x, 2).data)
    [1. 0. 0.]
    """
    return _call(_LESS_SCALAR, (x0,), (val,), n_outputs, outputs)


_LOGICAL_NOT = _index('logical_not')


@_checked
def logical_not(x0: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where x0 is 0, else 0. No gradient.

    Args:
        x0: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 1, 2])
    >>> print(F.logical_not(x).data)
    [1. 0. 0.]
    """
    return _call(_LOGICAL_NOT, (x0,), (), n_outputs, outputs)


_ISNAN = _index('isnan')


@_checked
def isnan(x0: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where x0 is NaN, else 0. No gradient.

    Args:
        x0: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, np.nan, np.inf])
    >>> print(F.isnan(x).data)
    [0. 1. 0.]
    """
    return _call(_ISNAN, (x0,), (), n_outputs, outputs)


_ISINF = _index('isinf')


@_checked
def isinf(x0: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where x0 is infinite, of either sign, else 0. No gradient.

    Args:
        x0: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, np.nan, np.inf])
    >>> print(F.isinf(x).data)
    [0. 0. 1.]
    """
    return _call(_ISINF, (x0,), (), n_outputs, outputs)


_RESET_NAN = _index('reset_nan')


@_checked
def reset_nan(x0: A, val: float = 0.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x0 with a number in place of NaN, where the gradient is 0.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, np.nan, np.inf])
    >>> print(F.reset_nan(x, 7).data)
    [ 1.  7. inf]
    """
    return _call(_RESET_NAN, (x0,), (val,), n_outputs, outputs)


_RESET_INF = _index('reset_inf')


@_checked
def reset_inf(x0: A, val: float = 0.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x0 with a number in place of both infinities, where the gradient is 0.

    Args:
        x0: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, np.nan, np.inf])
    >>> print(F.reset_inf(x, 7).data)
    [ 1. nan  7.]
    """
    return _call(_RESET_INF, (x0,), (val,), n_outputs, outputs)


_WHERE = _index('where')


@_checked
def where(condition: A, x_true: A, x_false: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x_true where the condition is not 0, x_false elsewhere. The condition may lack the last axes: then it chooses
     whole rows. It gets no gradient.

    Args:
        condition: N-D array, M >= N >= 0, whose shape begins that of x_true.
        x_true: M-D array, whose shape begins with condition's.
        x_false: M-D array of x_true's shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: M-D array of x_true's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> mask, a, b = A([1, 0, 1]), A([1, 2, 3]), A([10, 20, 30])
    >>> print(F.where(mask, a, b).data)
    [ 1. 20.  3.]
    """
    return _call(_WHERE, (condition, x_true, x_false), (), n_outputs, outputs)


_SEARCHSORTED = _index('searchsorted')


@_checked
def searchsorted(sorted_sequence: A, values: A, right: bool | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Where numbers belong in sorted lines, the last axis: how many elements of the line are less. NaN counts as the largest
     number. No gradient.

    Args:
        sorted_sequence: N-D array, sorted along its last axis.
        values: Numbers to search for: N-D array of the same shape but for the last axis.
        right: Count the equal ones too; None: False.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the shape of values.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> edges, x = A([1, 3, 5]), A([0, 3, 4])
    >>> print(F.searchsorted(edges, x).data)
    [0. 1. 2.]
    >>> print(F.searchsorted(edges, x, right=True).data)
    [0. 2. 2.]
    """
    return _call(_SEARCHSORTED, (sorted_sequence, values), (right,), n_outputs, outputs)


_CONSTANT = _index('constant')


@_checked
def constant(val: float = 0.0, shape: Sequence[int] = (), n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """An array full of `val`.

    Args:
        val: The number.
        shape: Shape of the array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array.

    Raises:
        ValueError: For a shape with negative sizes, or too large for memory.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.constant(7, (2, 2))
    >>> y.forward()
    >>> print(y.d)
    [[7. 7.]
     [7. 7.]]
    """
    return _call(_CONSTANT, (), (val, shape), n_outputs, outputs)


_ARANGE = _index('arange')


@_checked
def arange(start: float, stop: float, step: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Numbers from start on, step apart, to before stop. They are counted as NNabla does, in single precision, each
     number the sum of the one before and step: so there may be one more than the quotient says.

    Args:
        start: The first number.
        stop: Where the numbers end; itself left out.
        step: The distance; may be negative, not 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: 1-D array.

    Raises:
        ValueError: For a step of 0, or limits that are not finite.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.arange(0, 10, 3)
    >>> y.forward()
    >>> print(y.d)
    [0. 3. 6. 9.]
    """
    return _call(_ARANGE, (), (start, stop, step), n_outputs, outputs)


_LINSPACE = _index('linspace')


@_checked
def linspace(start: float, stop: float, num: int, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """`num` numbers from start to stop, both included.

    Args:
        start: The first number.
        stop: The last number.
        num: How many.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: 1-D array.

    Raises:
        ValueError: For a negative num.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.linspace(0, 1, 5)
    >>> y.forward()
    >>> print(y.d)
    [0.   0.25 0.5  0.75 1.  ]
    """
    return _call(_LINSPACE, (), (start, stop, num), n_outputs, outputs)


_ABS = _index('abs')


@_checked
def abs(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Absolute value, `y = |x|`; its gradient at 0 is 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-2, 0, 3])
    >>> print(F.abs(x).data)
    [2. 0. 3.]
    """
    return _call(_ABS, (x,), (), n_outputs, outputs)


_EXP = _index('exp')


@_checked
def exp(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Exponential function, `y = exp(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.exp(x).data.round(3))
    [0.368 1.    2.718]
    """
    return _call(_EXP, (x,), (), n_outputs, outputs)


_LOG = _index('log')


@_checked
def log(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Natural logarithm, `y = log(x)`; -inf at 0, NaN below.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0.5, 1, 10])
    >>> print(F.log(x).data.round(3))
    [-0.693  0.     2.303]
    """
    return _call(_LOG, (x,), (), n_outputs, outputs)


_IDENTITY = _index('identity')


@_checked
def identity(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x itself: the output is x's memory.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x itself, of its shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.identity(x).data)
    [1 2]
    """
    return _call(_IDENTITY, (x,), (), n_outputs, outputs)


_ROUND = _index('round')


@_checked
def round(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The nearest integer, halves away from zero.
     The gradient passes straight through.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1.5, 0.5, 1.4])
    >>> print(F.round(x).data)
    [-2.  1.  1.]
    """
    return _call(_ROUND, (x,), (), n_outputs, outputs)


_CEIL = _index('ceil')


@_checked
def ceil(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The smallest integer that is not less.
     The gradient passes straight through.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1.5, 0.5, 1.4])
    >>> print(F.ceil(x).data)
    [-1.  1.  2.]
    """
    return _call(_CEIL, (x,), (), n_outputs, outputs)


_FLOOR = _index('floor')


@_checked
def floor(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The largest integer that is not greater.
     The gradient passes straight through.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1.5, 0.5, 1.4])
    >>> print(F.floor(x).data)
    [-2.  0.  1.]
    """
    return _call(_FLOOR, (x,), (), n_outputs, outputs)


_SIN = _index('sin')


@_checked
def sin(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sine, `y = sin(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 0.5, 1])
    >>> print(F.sin(x).data.round(3))
    [0.    0.479 0.841]
    """
    return _call(_SIN, (x,), (), n_outputs, outputs)


_COS = _index('cos')


@_checked
def cos(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cosine, `y = cos(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 0.5, 1])
    >>> print(F.cos(x).data.round(3))
    [1.    0.878 0.54 ]
    """
    return _call(_COS, (x,), (), n_outputs, outputs)


_TAN = _index('tan')


@_checked
def tan(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Tangent, `y = tan(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([0, 0.5, 1])
    >>> print(F.tan(x).data.round(3))
    [0.    0.546 1.557]
    """
    return _call(_TAN, (x,), (), n_outputs, outputs)


_SINH = _index('sinh')


@_checked
def sinh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Hyperbolic sine, `y = sinh(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.sinh(x).data.round(3))
    [-1.175  0.     1.175]
    """
    return _call(_SINH, (x,), (), n_outputs, outputs)


_COSH = _index('cosh')


@_checked
def cosh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Hyperbolic cosine, `y = cosh(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.cosh(x).data.round(3))
    [1.543 1.    1.543]
    """
    return _call(_COSH, (x,), (), n_outputs, outputs)


_ASIN = _index('asin')


@_checked
def asin(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Arcus sine, `y = asin(x)`; NaN outside of -1 .. 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.asin(x).data.round(3))
    [-1.571  0.     1.571]
    """
    return _call(_ASIN, (x,), (), n_outputs, outputs)


_ACOS = _index('acos')


@_checked
def acos(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Arcus cosine, `y = acos(x)`; NaN outside of -1 .. 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.acos(x).data.round(3))
    [3.142 1.571 0.   ]
    """
    return _call(_ACOS, (x,), (), n_outputs, outputs)


_ATAN = _index('atan')


@_checked
def atan(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Arcus tangent, `y = atan(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.atan(x).data.round(3))
    [-0.785  0.     0.785]
    """
    return _call(_ATAN, (x,), (), n_outputs, outputs)


_ATAN2 = _index('atan2')


@_checked
def atan2(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Angle of the point (x1, x0), `y = atan2(x0, x1)`, as C's.

    Args:
        x0: N-D array of ordinates.
        x1: N-D array of abscissas.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> y, x = A([1, 1, -1]), A([1, -1, 0])
    >>> print(F.atan2(y, x).data.round(3))
    [ 0.785  2.356 -1.571]
    """
    return _call(_ATAN2, (x0, x1), (), n_outputs, outputs)


_ASINH = _index('asinh')


@_checked
def asinh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Inverse hyperbolic sine, `y = asinh(x)`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.asinh(x).data.round(3))
    [-0.881  0.     0.881]
    """
    return _call(_ASINH, (x,), (), n_outputs, outputs)


_ACOSH = _index('acosh')


@_checked
def acosh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Inverse hyperbolic cosine, `y = acosh(x)`; NaN below 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2, 3])
    >>> print(F.acosh(x).data.round(3))
    [0.    1.317 1.763]
    """
    return _call(_ACOSH, (x,), (), n_outputs, outputs)


_ATANH = _index('atanh')


@_checked
def atanh(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Inverse hyperbolic tangent, `y = atanh(x)`; NaN outside of -1 .. 1.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-0.5, 0, 0.5])
    >>> print(F.atanh(x).data.round(3))
    [-0.549  0.     0.549]
    """
    return _call(_ATANH, (x,), (), n_outputs, outputs)


_ERF = _index('erf')


@_checked
def erf(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Error function, `y = 2 / sqrt(pi) int_0^x exp(-t^2) dt`.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-1, 0, 1])
    >>> print(F.erf(x).data.round(3))
    [-0.843  0.     0.843]
    """
    return _call(_ERF, (x,), (), n_outputs, outputs)


_EINSUM = _index('einsum')


@_checked
def einsum(*x: A, equation: str = '', n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Einstein's summation convention: products of elements, summed over the axes that the result does not have.

    Args:
        x: N-D arrays.
        equation: For each array the labels of its axes, letters, with commas between; after '->' those of the
            result, which by default are those that occur once, in alphabetic order. '...' stands for any number
            of axes: as in broadcasting, those of different arrays meet at the last one, and have one size or
            size 1. A label that occurs twice in an array is its diagonal.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array.

    Raises:
        ValueError: For an equation that is none, or does not fit the arrays.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1, 2], [3, 4]]), A([[1, 10], [1, 1]])
    >>> print(F.einsum(a, b, equation="ij,jk->ik").data)
    [[ 3. 12.]
     [ 7. 34.]]
    >>> print(F.einsum(a, equation="ii").data)
    5.0
    """
    return _call(_EINSUM, x, (equation,), n_outputs, outputs)


_CONCATENATE = _index('concatenate')


@_checked
def concatenate(*x: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Joins arrays along an axis. Their sizes along the other axes must agree.

    Args:
        x: N-D arrays.
        axis: Axis to join along; None: the last one. It may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The joined array: as large along axis as all together.

    Raises:
        ValueError: For an axis that the arrays do not have, other sizes beside it, or no array at all.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([[1, 2]]), A([[3, 4]])
    >>> print(F.concatenate(a, b, axis=0).data)
    [[1. 2.]
     [3. 4.]]
    >>> print(F.concatenate(a, b).data)
    [[1. 2. 3. 4.]]
    """
    return _call(_CONCATENATE, x, (axis,), n_outputs, outputs)


_SPLIT = _index('split')


def _split(x: A, axis: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Cuts an array along an axis into as many pieces as the axis is long; the pieces do not have that axis.

    Args:
        x: N-D array.
        axis: Axis to cut along; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: An array for each place along axis, without that axis.

    Raises:
        ValueError: For an axis that x does not have.
    """
    return _call(_SPLIT, (x,), (axis,), n_outputs, outputs)


_STACK = _index('stack')


@_checked
def stack(*x: A, axis: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Joins arrays of one shape along a new axis.

    Args:
        x: N-D arrays of one shape.
        axis: Place of the new axis in the result; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The joined array, with one axis more.

    Raises:
        ValueError: For an axis that the result does not have, arrays of several shapes, or no array at all.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2]), A([3, 4])
    >>> print(F.stack(a, b, axis=1).data)
    [[1. 3.]
     [2. 4.]]
    """
    return _call(_STACK, x, (axis,), n_outputs, outputs)


_SLICE = _index('slice')


@_checked
def slice(x: A, start: Sequence[int] | None = None, stop: Sequence[int] | None = None, step: Sequence[int] | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A part of an array, as `x[start:stop:step]` in Python for each axis.
    
     Lists that are shorter than x has axes are about the last axes. The number -2^63 stands for Python's None.

    Args:
        x: N-D array.
        start: First position of each axis; None: the first one (with a negative step the last one).
        stop: Position before which each axis ends; None: none is left out.
        step: Distance of the positions, may be negative; None: 1.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The part, an array of x's number of axes.

    Raises:
        ValueError: For a step of 0, or more numbers than x has axes.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3, 4], [5, 6, 7, 8]])
    >>> print(F.slice(x, start=(0, 1), stop=(2, 4), step=(1, 2)).data)
    [[2. 4.]
     [6. 8.]]
    """
    return _call(_SLICE, (x,), (start, stop, step), n_outputs, outputs)


_PAD = _index('pad')


@_checked
def pad(x: A, pad_width: Sequence[int], mode: str = 'constant', constant_value: float = 0.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Puts a border around an array. With mode 'reflect' the array is mirrored at its first and last elements, which are not repeated;
     with 'repeat' they are the border.

    Args:
        x: N-D array.
        pad_width: Widths before and after each of the last axes: (before, after, before, after, ..).
        mode: 'constant', 'reflect' or 'repeat'.
        constant_value: The border's value for mode 'constant'.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array.

    Raises:
        ValueError: For an odd number of widths, more pairs than x has axes, negative ones, or another mode.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3]])
    >>> print(F.pad(x, (0, 0, 1, 2)).data)
    [[0. 1. 2. 3. 0. 0.]]
    >>> print(F.pad(x, (2, 2), mode="reflect").data)
    [[3. 2. 1. 2. 3. 2. 1.]]
    """
    return _call(_PAD, (x,), (pad_width, mode, constant_value), n_outputs, outputs)


_TRANSPOSE = _index('transpose')


@_checked
def transpose(x: A, axes: Sequence[int], n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Puts the axes into another order: axis i of the result is axis `axes[i]` of x.

    Args:
        x: N-D array.
        axes: The axes of x in their new order, each once. They may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array.

    Raises:
        ValueError: For axes that are not those of x in another order.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [4, 5, 6]])
    >>> print(F.transpose(x, (1, 0)).data)
    [[1. 4.]
     [2. 5.]
     [3. 6.]]
    """
    return _call(_TRANSPOSE, (x,), (axes,), n_outputs, outputs)


_BROADCAST = _index('broadcast')


@_checked
def broadcast(x: A, shape: Sequence[int], n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Repeats an array along axes of size 1 to a larger shape, as NumPy's `broadcast_to`.

    Args:
        x: N-D array.
        shape: Shape of the result; x's axes are matched from the last.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the given shape.

    Raises:
        ValueError: For a shape that x does not broadcast to.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1], [2]])
    >>> print(F.broadcast(x, (2, 3)).data)
    [[1. 1. 1.]
     [2. 2. 2.]]
    """
    return _call(_BROADCAST, (x,), (shape,), n_outputs, outputs)


_TILE = _index('tile')


@_checked
def tile(x: A, reps: int | Sequence[int], n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Repeats an array, as NumPy's `tile`. A list shorter than x has axes is about the last axes; a longer one adds axes in front.

    Args:
        x: N-D array.
        reps: How often each axis is repeated.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The repeated array, each size being reps times as large.

    Raises:
        ValueError: For repetitions below 1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2]])
    >>> print(F.tile(x, (2, 2)).data)
    [[1. 2. 1. 2.]
     [1. 2. 1. 2.]]
    """
    return _call(_TILE, (x,), (reps,), n_outputs, outputs)


_ONE_HOT = _index('one_hot')


@_checked
def one_hot(x: A, shape: Sequence[int], n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """One-hot vectors, or arrays of more axes: 1 at the place that the last axis of x names, 0 elsewhere. Places may count from the end;
     a place out of range leaves zeros.

    Args:
        x: Places, of shape (.., M); M is the length of `shape`.
        shape: Shape of each one-hot array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: Array of x's shape without its last axis, then `shape`.

    Raises:
        ValueError: For a last axis of x that has not a number for each size of shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> labels = A([[2], [0]])
    >>> print(F.one_hot(labels, (3,)).data)
    [[0. 0. 1.]
     [1. 0. 0.]]
    """
    return _call(_ONE_HOT, (x,), (shape,), n_outputs, outputs)


_FLIP = _index('flip')


@_checked
def flip(x: A, axes: Sequence[int] | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Reverses the order of elements along axes.

    Args:
        x: N-D array.
        axes: Axes to reverse; None: the last one. They may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For axes that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> print(F.flip(x, axes=[0]).data)
    [[3. 4.]
     [1. 2.]]
    """
    return _call(_FLIP, (x,), (axes,), n_outputs, outputs)


_RESHAPE = _index('reshape')


@_checked
def reshape(x: A, shape: Sequence[int], inplace: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Another shape for the same elements. One negative size is inferred.

    Args:
        x: N-D array.
        shape: Sizes of the result; one of them may be -1.
        inplace: Whether the result is x's memory; if not, a copy.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The elements of x in the new shape.

    Raises:
        ValueError: For a shape of another number of elements, or with more than one -1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [4, 5, 6]])
    >>> print(F.reshape(x, (3, -1)).data)
    [[1 2]
     [3 4]
     [5 6]]
    """
    return _call(_RESHAPE, (x,), (shape, inplace), n_outputs, outputs)


_MATRIX_DIAG = _index('matrix_diag')


@_checked
def matrix_diag(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Diagonal matrices: the last axis of x becomes a diagonal, with zeros elsewhere.

    Args:
        x: N-D array of shape (.., M).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of shape (.., M, M).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, 2])
    >>> print(F.matrix_diag(x).data)
    [[1. 0.]
     [0. 2.]]
    """
    return _call(_MATRIX_DIAG, (x,), (), n_outputs, outputs)


_MATRIX_DIAG_PART = _index('matrix_diag_part')


@_checked
def matrix_diag_part(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The diagonals of matrices.

    Args:
        x: N-D array of shape (.., M, M).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of shape (.., M).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> print(F.matrix_diag_part(x).data)
    [1. 4.]
    """
    return _call(_MATRIX_DIAG_PART, (x,), (), n_outputs, outputs)


_ASSIGN = _index('assign')


@_checked
def assign(dst: A, src: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Writes `src` into the data of `dst` whenever it runs, and gives a copy. The gradient goes to `dst`.

    Args:
        dst: N-D array that is written.
        src: N-D array of the same shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of that shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> V = nn.Variable.from_numpy_array
    >>> x = V([0, 0])
    >>> F.assign(x, V([1, 2])).forward()
    >>> print(x.d)
    [1. 2.]
    """
    return _call(_ASSIGN, (dst, src), (), n_outputs, outputs)


_GATHER = _index('gather')


@_checked
def gather(x: A, Indices: A, axis: int | None = None, batch_dims: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Picks slices of x along an axis: `y[.., i, ..] = x[.., Indices[i], ..]`. With `batch_dims`, the first axes of both are matched.

    Args:
        x: N-D array.
        Indices: Indices into the axis, 0 or more.
        axis: Axis to pick from; None: 0. It may count from the end.
        batch_dims: How many leading axes x and Indices share; None: 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x.shape[:axis] + Indices.shape[batch_dims:] + x.shape[axis + 1:].

    Raises:
        ValueError: For an axis or batch_dims that x does not have, or an index that does not fit (on a GPU:
            NaN).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, i = A([[1, 2, 3], [4, 5, 6]]), A([2, 0])
    >>> print(F.gather(x, i, axis=1).data)
    [[3. 1.]
     [6. 4.]]
    """
    return _call(_GATHER, (x, Indices), (axis, batch_dims), n_outputs, outputs)


_GATHER_ND = _index('gather_nd')


@_checked
def gather_nd(data: A, indices: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Elements or slices at coordinates: `y[i] = data[indices[0, i], indices[1, i], ..]`. Coordinates may count from the end.

    Args:
        data: N-D array.
        indices: Coordinates, of shape (M, ..): M of them for each place, for the first M axes of data.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: indices.shape[1:] + data.shape[M:].

    Raises:
        ValueError: For more coordinates than x has axes, or an index that does not fit (on a GPU: NaN).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, places = A([[1, 2, 3], [4, 5, 6]]), A([[0, 1], [2, 0]])
    >>> print(F.gather_nd(x, places).data)
    [3. 4.]
    """
    return _call(_GATHER_ND, (data, indices), (), n_outputs, outputs)


_SCATTER_ND = _index('scatter_nd')


def _scatter_nd(data: A, indices: A, out: A | None = None, shape: Sequence[int] | None = None, add: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Writes elements or slices to coordinates: `y[indices[0, i], indices[1, i], ..] = data[i]`, elsewhere y is `out`, or 0.
     Coordinates may count from the end. Of several values for one place the last one stays, or they are added up.

    Args:
        data: indices.shape[1:] + shape[M:].
        indices: Coordinates, of shape (M, ..).
        out: What the result is elsewhere, of its shape; zeros by default. If no function has made it, it
            becomes the result.
        shape: Shape of the result; None: of `out`.
        add: Whether values are added to what is there.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the given shape.
    """
    return _call(_SCATTER_ND, (data, indices, out), (shape, add), n_outputs, outputs)


_SCATTER_ADD = _index('scatter_add')


@_checked
def scatter_add(x0: A, indices: A, x1: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Adds elements along an axis: `y = x0`, then `y[.., indices[.., i, ..], ..] += x1[.., i, ..]` for all elements of `indices`.

    Args:
        x0: N-D array that is added to.
        indices: Places along the axis, 0 or more; not larger than x1, nor than x0 along the other axes.
        x1: N-D array of what is added.
        axis: The axis; None: 0. It may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x0's shape.

    Raises:
        ValueError: For an axis that x0 does not have, or an index that does not fit (left out on a GPU).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, i, values = A([[1.0, 1, 1]]), A([[2, 2]]), A([[10.0, 20]])
    >>> print(F.scatter_add(x, i, values, axis=1).data)
    [[ 1.  1. 31.]]
    """
    return _call(_SCATTER_ADD, (x0, indices, x1), (axis,), n_outputs, outputs)


_BOOL_GATHER = _index('bool_gather')


def _bool_gather(input: A, mask: A, rows: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The rows of `input` where the mask is not zero, in their order.

    Args:
        input: N-D array of a shape that begins with the mask's.
        mask: N-D array.
        rows: Number of rows, as many as there are places where the mask is not zero.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: Array of shape (rows,) where the mask has all axes of input, else (rows, size of one row).
    """
    return _call(_BOOL_GATHER, (input, mask), (rows,), n_outputs, outputs)


_BOOL_SCATTER = _index('bool_scatter')


@_checked
def bool_scatter(input: A, mask: A, output: A | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Puts the rows of `input`, one after the other, where the mask is not zero; elsewhere the result is `output`, or 0.

    Args:
        input: Rows, of shape (n, ..), n the number of places where the mask is not zero.
        mask: N-D array.
        output: What the result is elsewhere, of its shape; zeros by default. If no function has made it, it
            becomes the result.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of shape mask.shape + input.shape[1:].

    Raises:
        ValueError: For a mask with another number of true elements than input has rows (not seen on a GPU).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> values, mask = A([7, 8]), A([[1, 0], [0, 1]])
    >>> print(F.bool_scatter(values, mask).data)
    [[7. 0.]
     [0. 8.]]
    """
    return _call(_BOOL_SCATTER, (input, mask, output), (), n_outputs, outputs)


_BOOL_FILL = _index('bool_fill')


@_checked
def bool_fill(data: A, mask: A, value: float = 0.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A number where the mask is not zero, x elsewhere.

    Args:
        data: N-D array.
        mask: N-D array that broadcasts to data's shape.
        value: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: N-D array of data's shape.

    Raises:
        ValueError: For a mask that does not broadcast to data.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, mask = A([1, 2, 3]), A([0, 1, 0])
    >>> print(F.bool_fill(x, mask, value=-1).data)
    [ 1. -1.  3.]
    """
    return _call(_BOOL_FILL, (data, mask), (value,), n_outputs, outputs)


_BROADCAST_TO = _index('broadcast_to')


@_checked
def broadcast_to(x: A, y: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Repeats y to the shape of x. y's axes are x's from `axis` on, with the same sizes; by default x's last ones.

    Args:
        x: N-D array, of which only the shape counts.
        y: Array of x's shape or a part of it.
        axis: The axis of x that is y's first; None or -1: such that the last ones are matched.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        z: N-D array of x's shape.

    Raises:
        ValueError: For an axis at which the sizes are others.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, y = A(np.zeros((2, 3))), A([1, 2])
    >>> print(F.broadcast_to(x, y, axis=0).data)
    [[1. 1. 1.]
     [2. 2. 2.]]
    """
    return _call(_BROADCAST_TO, (x, y), (axis,), n_outputs, outputs)


_SHIFT = _index('shift')


@_checked
def shift(x: A, shifts: Sequence[int] | None = None, border_mode: str = 'nearest', n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Moves the elements along axes, `y[i] = x[i - shift]`. Where there is no element, mode 'nearest' repeats the first or last
     one; 'reflect' mirrors the array at its ends, so that these come twice.

    Args:
        x: N-D array.
        shifts: Distances along the last axes; None: 0.
        border_mode: 'nearest' or 'reflect'.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For more shifts than x has axes, or another border_mode than 'nearest' and 'reflect'.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3, 4]])
    >>> print(F.shift(x, (1,)).data)
    [[1. 1. 2. 3.]]
    >>> print(F.shift(x, (-1,), border_mode="reflect").data)
    [[2. 3. 4. 4.]]
    """
    return _call(_SHIFT, (x,), (shifts, border_mode), n_outputs, outputs)


_SORT = _index('sort')


@overload
def sort(x: A, axis: int = -1, reverse: bool = False, with_index: Literal[False] = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A: ...


@overload
def sort(x: A, axis: int = -1, reverse: bool = False, with_index: bool = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any: ...


@_checked
def sort(x: A, axis: int = -1, reverse: bool = False, with_index: bool = False, only_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Sorts the elements along an axis. Equal ones keep their order; NaN counts as the largest number.

    Args:
        x: N-D array.
        axis: The axis; may count from the end.
        reverse: Sort from the largest element down.
        with_index: Also give where each element was.
        only_index: Give where each element was alone.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Sorted elements, or [sorted elements, indices], or indices along the axis.

    Raises:
        ValueError: For an axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[3, 1, 2]])
    >>> y, i = F.sort(x, with_index=True)
    >>> print(y.data)
    [[1. 2. 3.]]
    >>> print(i.data)
    [[1 2 0]]
    """
    return _call(_SORT, (x,), (axis, reverse, with_index, only_index), n_outputs, outputs)


_SHAPE = _index('shape')


@_checked
def shape(x: A, start: int | None = None, end: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The sizes of x, or those of its axes `start` to `end` (not included); ends beyond x's axes are cut. No gradient.

    Args:
        x: N-D array.
        start: The first axis; None: 0. It may count from the end.
        end: The axis to end before; None or 0: all. It may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        shape: 1-D array.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [4, 5, 6]])
    >>> print(F.shape(x).data)
    [2. 3.]
    """
    return _call(_SHAPE, (x,), (start, end), n_outputs, outputs)


_TRILU = _index('trilu')


@_checked
def trilu(x: A, k: int = 0, upper: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The upper or lower triangles of matrices, with zeros beside them (as NumPy's `triu` and `tril`).

    Args:
        x: N-D array of matrices, in the last two axes.
        k: The diagonal where the triangle ends, itself in it; 0 is the main one, above it they are positive.
        upper: Whether the upper triangle stays; if not, the lower one.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For an x of fewer than two axes.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    >>> print(F.trilu(x).data)
    [[1. 2. 3.]
     [0. 5. 6.]
     [0. 0. 9.]]
    >>> print(F.trilu(x, k=-1, upper=False).data)
    [[0. 0. 0.]
     [4. 0. 0.]
     [7. 8. 0.]]
    """
    return _call(_TRILU, (x,), (k, upper), n_outputs, outputs)


_MESHGRID = _index('meshgrid')


@_checked
def meshgrid(*x: A, ij_indexing: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """The coordinates of a grid, as NumPy's `meshgrid`: each input repeated along the axes of the others.

    Args:
        x: 1-D arrays: the coordinates along each axis.
        ij_indexing: Whether input i goes along axis i; if not, the first two axes change places.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: One array for each input, with an axis for each.

    Raises:
        ValueError: For arrays of another number of axes than one, or none at all.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = F.meshgrid(A([1, 2, 3]), A([10, 20]))
    >>> print(a.data)
    [[1. 2. 3.]
     [1. 2. 3.]]
    >>> print(b.data)
    [[10. 10. 10.]
     [20. 20. 20.]]
    """
    return _call(_MESHGRID, x, (ij_indexing,), n_outputs, outputs)


_PACK_PADDED_SEQUENCE = _index('pack_padded_sequence')


def _pack_padded_sequence(padded_sequence: A, lengths: A, batch_first: bool = False, rows: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Packs sequences of several lengths: without padding, the first steps of all, then all second ones and so on.

    Args:
        padded_sequence: Sequences, of shape (T, B, ..), or (B, T, ..) if batch_first.
        lengths: Their lengths, from the longest down: of shape (B,).
        batch_first: Whether the first axis is that of the sequences.
        rows: The sum of the lengths.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        pack_sequence: Array of shape (sum of lengths, ..).
        batch_sizes: How many sequences have each step: of shape (T,).
    """
    return _call(_PACK_PADDED_SEQUENCE, (padded_sequence, lengths), (batch_first, rows), n_outputs, outputs)


_PAD_PACKED_SEQUENCE = _index('pad_packed_sequence')


def _pad_packed_sequence(packed_sequence: A, batch_sizes: A, batch_first: bool = False, padding_value: float | None = None, total_length: int | None = None, sequences: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Undoes `pack_padded_sequence`.

    Args:
        packed_sequence: Packed sequences, of shape (sum of batch_sizes, ..).
        batch_sizes: How many sequences have each step, from the most down: of shape (T,).
        batch_first: Whether the first axis of the result is that of the sequences.
        padding_value: What stands behind the end of a sequence; None: 0.
        total_length: Steps of the result, if more than T.
        sequences: How many sequences there are.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        padded_sequence: Sequences, of shape (T, B, ..), or (B, T, ..) if batch_first.
        lengths: Their lengths: of shape (B,).
    """
    return _call(_PAD_PACKED_SEQUENCE, (packed_sequence, batch_sizes), (batch_first, padding_value, total_length, sequences), n_outputs, outputs)


_NONZERO = _index('nonzero')


def _nonzero(x: A, places: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The places where x is not zero, in their order. No gradient.

    Args:
        x: N-D array.
        places: How many there are.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Indices, of shape (number of x's axes, places).
    """
    return _call(_NONZERO, (x,), (places,), n_outputs, outputs)


_TOP_K_DATA = _index('top_k_data')


@overload
def top_k_data(x: A, k: int, abs: bool = False, reduce: bool = True, base_axis: int = 1, largest: bool = True, with_index: Literal[False] = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A: ...


@overload
def top_k_data(x: A, k: int, abs: bool = False, reduce: bool = True, base_axis: int = 1, largest: bool = True, with_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any: ...


@_checked
def top_k_data(x: A, k: int, abs: bool = False, reduce: bool = True, base_axis: int = 1, largest: bool = True, with_index: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """The k largest elements of each sample, from the largest down. Of equal ones the first count; NaN counts as the largest number.

    Args:
        x: N-D array; the axes from base_axis on are a sample.
        k: How many, from 1 to the size of a sample.
        abs: Compare magnitudes.
        reduce: Give the k elements; if not, an array of x's shape with 0 in place of the others.
        base_axis: First axis of a sample; may count from the end.
        largest: The largest ones; if not, the smallest, from the smallest up.
        with_index: Also give where the elements were in their sample; wants `reduce`.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape x.shape[:base_axis] + (k,), or of x's shape; or [it, indices].

    Raises:
        ValueError: For a k that is not from 1 to a sample's size, a base_axis that x does not have, or
            with_index without reduce.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 5, 3], [6, 2, 4]])
    >>> print(F.top_k_data(x, 2).data)
    [[5. 3.]
     [6. 4.]]
    >>> print(F.top_k_data(x, 2, reduce=False).data)
    [[0. 5. 3.]
     [6. 0. 4.]]
    """
    return _call(_TOP_K_DATA, (x,), (k, abs, reduce, base_axis, largest, with_index), n_outputs, outputs)


_TOP_K_GRAD = _index('top_k_grad')


@_checked
def top_k_grad(x: A, k: int, abs: bool = False, base_axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """x itself; of its gradient the k largest elements of each sample flow back, zeros in place of the others.

    Args:
        x: N-D array; the axes from base_axis on are a sample.
        k: How many, from 1 to the size of a sample.
        abs: Compare magnitudes.
        base_axis: First axis of a sample; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x itself, of its shape.

    Raises:
        ValueError: For a k that is not from 1 to a sample's size, or a base_axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> V = nn.Variable.from_numpy_array
    >>> x = V([[1, 5, 3]], need_grad=True)
    >>> y = F.top_k_grad(x, 2) * V([[10, 20, 30]])
    >>> y.forward()
    >>> y.backward()
    >>> print(x.g)
    [[ 0. 20. 30.]]
    """
    return _call(_TOP_K_GRAD, (x,), (k, abs, base_axis), n_outputs, outputs)


_EYE_LIKE = _index('eye_like')


@_checked
def eye_like(x: A, k: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A matrix with ones on a diagonal and zeros elsewhere. No gradient.

    Args:
        x: Matrix, of which only the shape counts.
        k: The diagonal; 0 is the main one, above it they are positive.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Matrix of x's shape.

    Raises:
        ValueError: For an x that is no matrix or batch of matrices.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[0, 0, 0], [0, 0, 0]])
    >>> print(F.eye_like(x).data)
    [[1. 0. 0.]
     [0. 1. 0.]]
    >>> print(F.eye_like(x, k=1).data)
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    return _call(_EYE_LIKE, (x,), (k,), n_outputs, outputs)


_BATCH_DET = _index('batch_det')


@_checked
def batch_det(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Determinants. The second derivative wants the inverse: it is NaN for a singular matrix.

    Args:
        x: Square matrices, of shape (B, n, n).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape (B,).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[4, 2], [1, 3]], [[2, 0], [0, 2]]])
    >>> print(F.batch_det(x).data)
    [10.  4.]
    """
    return _call(_BATCH_DET, (x,), (), n_outputs, outputs)


_BATCH_LOGDET = _index('batch_logdet')


@_checked
def batch_logdet(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Logarithms of the magnitudes of determinants; -inf for a singular matrix.

    Args:
        x: Square matrices, of shape (B, n, n).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape (B,).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[2, 0], [0, 4]]])
    >>> print(F.batch_logdet(x).data.round(3))
    [2.079]
    """
    return _call(_BATCH_LOGDET, (x,), (), n_outputs, outputs)


_BATCH_INV = _index('batch_inv')


@_checked
def batch_inv(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Inverses; NaN for a singular matrix.

    Args:
        x: Square matrices, of shape (B, n, n).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Matrices of shape (B, n, n).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[1, 2], [3, 4]]])
    >>> print(F.batch_inv(x).data.round(3))
    [[[-2.   1. ]
      [ 1.5 -0.5]]]
    """
    return _call(_BATCH_INV, (x,), (), n_outputs, outputs)


_BATCH_CHOLESKY = _index('batch_cholesky')


@_checked
def batch_cholesky(x: A, upper: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cholesky's decomposition of symmetric positive-definite matrices, `x = y y^T`, or `x = y^T y` if upper. Only the lower triangle of x is
     read. NaN for a matrix that is not positive definite. The gradient is symmetric.

    Args:
        x: Symmetric matrices, of shape (B, n, n).
        upper: Give upper triangles; if not, lower ones.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Triangular matrices of shape (B, n, n).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[4, 2], [2, 5]]])
    >>> print(F.batch_cholesky(x).data)
    [[[2. 0.]
      [1. 2.]]]
    """
    return _call(_BATCH_CHOLESKY, (x,), (upper,), n_outputs, outputs)


_UNIQUE = _index('unique')


@overload
def _unique(x: A, flatten: bool = True, axis: int | None = None, sorted: bool = True, with_index: Literal[False] = False, with_inverse: bool = False, with_counts: bool = False, count: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A: ...


@overload
def _unique(x: A, flatten: bool = True, axis: int | None = None, sorted: bool = True, with_index: bool = False, with_inverse: bool = False, with_counts: bool = False, count: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any: ...


def _unique(x: A, flatten: bool = True, axis: int | None = None, sorted: bool = True, with_index: bool = False, with_inverse: bool = False, with_counts: bool = False, count: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """The different elements of an array, or its different slices along an axis. NaN counts as equal to NaN. No gradient.

    Args:
        x: N-D array.
        flatten: Look at elements; if not, at slices along `axis`.
        axis: The axis; may count from the end. None: elements are looked at in any case.
        sorted: Sort them; if not, they come as they first occur.
        with_index: Also give where each occurs first.
        with_inverse: Also give, for each element or slice of x, its number among the different ones.
        with_counts: Also give how often each occurs.
        count: How many there are.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The different elements or slices; or a list of them and what else is asked for.
    """
    return _call(_UNIQUE, (x,), (flatten, axis, sorted, with_index, with_inverse, with_counts, count), n_outputs, outputs)


_UNLINK = _index('unlink')


@_checked
def unlink(x: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The data of x under another variable; no gradient flows back to x.

    Args:
        x: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x itself, of its shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> V = nn.Variable.from_numpy_array
    >>> x = V([1, 2], need_grad=True)
    >>> y = F.unlink(x * 2)
    >>> y.forward()
    >>> print(y.d)
    [2. 4.]
    """
    return _call(_UNLINK, (x,), (), n_outputs, outputs)


_SINK = _index('sink')


def _sink(*x: A, one_input_grad: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A number, 0, that depends on all inputs: `forward` and `backward` of it run the graphs behind all of them.

    Args:
        x: N-D arrays.
        one_input_grad: Whether the gradient of each input is 1; else it is what the input's own gradient holds.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: 0, of shape ().
    """
    return _call(_SINK, x, (one_input_grad,), n_outputs, outputs)


_DROPOUT = _index('dropout')


@_checked
def dropout(x: A, p: float = 0.5, seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Drops elements with probability p and divides the others by 1 - p (Srivastava et al., 2014).
    
     Each run drops other elements; its backward pass drops the same ones.

    Args:
        x: N-D array.
        p: Probability of an element to be dropped, at least 0 and less than 1.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For a p that is not from 0 up to but not 1.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A(np.ones(1000))
    >>> y = F.dropout(x, p=0.2)
    >>> sorted({float(v) for v in y.data})
    [0.0, 1.25]
    """
    return _call(_DROPOUT, (x,), (p, seed), n_outputs, outputs)


_RAND = _index('rand')


@_checked
def rand(low: float = 0.0, high: float = 1.0, shape: Sequence[int] = (), seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Uniform random numbers, at least `low` and less than `high`.

    Args:
        low: The lower bound.
        high: The upper bound.
        shape: Shape of the result.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Random numbers of the given shape.

    Raises:
        ValueError: For a high that is not above low.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.rand(-1, 1, shape=(2, 3))
    >>> y.forward()
    >>> y.shape, bool((y.d <= 1).all())
    ((2, 3), True)
    """
    return _call(_RAND, (), (low, high, shape, seed), n_outputs, outputs)


_RANDN = _index('randn')


@_checked
def randn(mu: float = 0.0, sigma: float = 1.0, shape: Sequence[int] = (), seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Normal random numbers.

    Args:
        mu: The mean.
        sigma: The standard deviation.
        shape: Shape of the result.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Random numbers of the given shape.

    Raises:
        ValueError: For a sigma that is not above 0.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.randn(0, 1, shape=(2, 3))
    >>> y.shape
    (2, 3)
    """
    return _call(_RANDN, (), (mu, sigma, shape, seed), n_outputs, outputs)


_RANDINT = _index('randint')


@_checked
def randint(low: int = 0, high: int = 1, shape: Sequence[int] = (), seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Random integers of int32, at least `low` and less than `high`.

    Args:
        low: The lower bound, -2^31 or more.
        high: The upper bound, at most 2^31 - 1.
        shape: Shape of the result.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Random numbers of the given shape.

    Raises:
        ValueError: For a high that is not above low.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.randint(0, 10, shape=(2, 3))
    >>> y.forward()
    >>> y.shape, bool((y.d < 10).all())
    ((2, 3), True)
    """
    return _call(_RANDINT, (), (low, high, shape, seed), n_outputs, outputs)


_RAND_BINOMIAL = _index('rand_binomial')


@_checked
def rand_binomial(n: int = 1, p: float = 0.5, shape: Sequence[int] = (), seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Binomial random numbers: how many of `n` trials succeed, each with probability `p`.

    Args:
        n: The number of trials, 1 or more.
        p: The probability of success, more than 0 and less than 1.
        shape: Shape of the result.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Random numbers of the given shape.

    Raises:
        ValueError: For an n below 1, or a p that is not between 0 and 1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.rand_binomial(5, 0.5, shape=(2, 3))
    >>> y.forward()
    >>> y.shape, bool((y.d <= 5).all())
    ((2, 3), True)
    """
    return _call(_RAND_BINOMIAL, (), (n, p, shape, seed), n_outputs, outputs)


_RAND_BETA = _index('rand_beta')


@_checked
def rand_beta(alpha: float = 0.5, beta: float = 0.5, shape: Sequence[int] = (), seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Beta random numbers, of density `x^(alpha - 1) (1 - x)^(beta - 1)` up to a factor.

    Args:
        alpha: The first shape, more than 0.
        beta: The second shape, more than 0.
        shape: Shape of the result.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Random numbers of the given shape.

    Raises:
        ValueError: For alpha or beta that is not above 0.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.rand_beta(2, 2, shape=(2, 3))
    >>> y.forward()
    >>> y.shape, bool((y.d < 1).all())
    ((2, 3), True)
    """
    return _call(_RAND_BETA, (), (alpha, beta, shape, seed), n_outputs, outputs)


_RAND_GAMMA = _index('rand_gamma')


@_checked
def rand_gamma(k: float = 0.5, theta: float = 1.0, shape: Sequence[int] = (), seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Variable:
    """Gamma random numbers, of density `x^(k - 1) exp(-x / theta)` up to a factor.

    Args:
        k: The shape of the distribution, more than 0.
        theta: Its scale, more than 0.
        shape: Shape of the result.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Random numbers of the given shape.

    Raises:
        ValueError: For k or theta that is not above 0.

    >>> import nnrs as nn, nnrs.functions as F
    >>> y = F.rand_gamma(2, 1, shape=(2, 3))
    >>> y.forward()
    >>> y.shape, bool((y.d > 0).all())
    ((2, 3), True)
    """
    return _call(_RAND_GAMMA, (), (k, theta, shape, seed), n_outputs, outputs)


_RANDOM_CHOICE = _index('random_choice')


@_checked
def random_choice(x: A, w: A, shape: Sequence[int] = (), replace: bool = True, seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Picks elements at random from the rows of an array, each with a probability that is its weight's part of the row's.
    
     The gradient of each pick goes to the element and, as in NNabla, to its weight.

    Args:
        x: N-D array; its last axis is what is picked from.
        w: Weights of 0 or more, of x's shape.
        shape: Shape of the picks from each row; empty: one pick.
        replace: Whether an element may be picked again.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of shape x.shape[:-1] + shape.

    Raises:
        ValueError: For weights that are negative, infinite or NaN (on a GPU: 0), or fewer above 0 than are
            drawn without replacement.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, weights = A([1, 2, 3]), A([0, 1, 1])
    >>> y = F.random_choice(x, weights, shape=(100,))
    >>> sorted({float(v) for v in y.data})
    [2.0, 3.0]
    """
    return _call(_RANDOM_CHOICE, (x, w), (shape, replace, seed), n_outputs, outputs)


_RANDOM_CROP = _index('random_crop')


@_checked
def random_crop(x: A, shape: Sequence[int] | None = None, base_axis: int = 1, seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Takes a part of an array, each sample from another place.

    Args:
        x: N-D array.
        shape: Sizes of the last axes of the result; None: x's shape.
        base_axis: The axes before it number the samples; it may count from the end.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape but for the last axes.

    Raises:
        ValueError: For a shape that is larger than x, or a base_axis that x does not have.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A(np.arange(75).reshape(3, 5, 5))
    >>> F.random_crop(x, (2, 2)).shape
    (3, 2, 2)
    """
    return _call(_RANDOM_CROP, (x,), (shape, base_axis, seed), n_outputs, outputs)


_RANDOM_FLIP = _index('random_flip')


@_checked
def random_flip(x: A, axes: Sequence[int] | None = None, base_axis: int = 1, seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Reverses the order of elements along axes, or leaves it, with equal probability for each sample and axis.

    Args:
        x: N-D array.
        axes: Axes to reverse; None: the last one. They may count from the end.
        base_axis: The axes before it number the samples; it may count from the end.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For axes or a base_axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3]])
    >>> y = F.random_flip(x)
    >>> y.data.tolist() in ([[1, 2, 3]], [[3, 2, 1]])
    True
    """
    return _call(_RANDOM_FLIP, (x,), (axes, base_axis, seed), n_outputs, outputs)


_RANDOM_SHIFT = _index('random_shift')


@_checked
def random_shift(x: A, shifts: Sequence[int] | None = None, border_mode: str = 'nearest', constant_value: float = 0.0, base_axis: int = 1, seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Moves the elements along axes, each sample by other distances.

    Args:
        x: N-D array.
        shifts: The largest distances along the last axes, to both sides; None: 0.
        border_mode: Where there is no element: 'nearest' repeats the first or last one, 'reflect' mirrors the
            array at its ends, 'constant' puts constant_value.
        constant_value: What comes in, for 'constant'.
        base_axis: The axes before it number the samples; it may count from the end.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For negative shifts, more of them than axes from base_axis on, or another border_mode.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3]])
    >>> y = F.random_shift(x, (1,))
    >>> y.data.tolist() in ([[1, 1, 2]], [[1, 2, 3]], [[2, 3, 3]])
    True
    """
    return _call(_RANDOM_SHIFT, (x,), (shifts, border_mode, constant_value, base_axis, seed), n_outputs, outputs)


_RANDOM_ERASE = _index('random_erase')


@_checked
def random_erase(x: A, prob: float = 0.5, area_ratios: Sequence[float] = (0.02, 0.4), aspect_ratios: Sequence[float] = (0.3, 3.3333), replacements: Sequence[float] = (0.0, 255.0), n: int | None = None, share: bool = True, inplace: bool = False, base_axis: int = 1, seed: int = -1, channel_last: bool = False, ste_fine_grained: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Replaces rectangles at random places of images by random numbers (Zhong et al., Random Erasing Data Augmentation, 2017).
    
     A rectangle's area is a random part of the image's, its height `sqrt(area * ratio)` and its width `sqrt(area / ratio)`. As in NNabla,
     it covers one row and one column more than the whole part of these.

    Args:
        x: Images, of shape (N, C, H, W), or (N, H, W, C) if channel_last; any axes before base_axis number
            samples.
        prob: Probability of each rectangle.
        area_ratios: Least and largest part of the area.
        aspect_ratios: Least and largest ratio of height to width.
        replacements: Least and largest of the numbers that come in.
        n: Rectangles of an image at most; None: 1.
        share: Whether the channels of an image have the same rectangles.
        inplace: Ignored, as in NNabla.
        base_axis: The axes before it number the samples; three follow.
        seed: Seed of this function; -1: the global random stream.
        channel_last: Whether the channels are the last axis.
        ste_fine_grained: Whether no gradient goes to what was erased; if not, it goes there as elsewhere.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.

    Raises:
        ValueError: For a prob that is not from 0 to 1, or ratios that are not pairs of numbers of 0 or more.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A(np.ones((2, 3, 8, 8)))
    >>> y = F.random_erase(x, prob=1.0, replacements=(0, 0))
    >>> y.shape, bool((y.data == 0).any())
    ((2, 3, 8, 8), True)
    """
    return _call(_RANDOM_ERASE, (x,), (prob, area_ratios, aspect_ratios, replacements, n, share, inplace, base_axis, seed, channel_last, ste_fine_grained), n_outputs, outputs)


_IMAGE_AUGMENTATION = _index('image_augmentation')


@_checked
def image_augmentation(x: A, shape: Sequence[int] | None = None, pad: Sequence[int] = (0, 0), min_scale: float = 1.0, max_scale: float = 1.0, angle: float = 0.0, aspect_ratio: float = 1.0, distortion: float = 0.0, flip_lr: bool = False, flip_ud: bool = False, brightness: float = 0.0, brightness_each: bool = False, contrast: float = 1.0, contrast_center: float = 0.0, contrast_each: bool = False, noise: float = 0.0, seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Alters images, each otherwise: cuts out a part, scales, turns, stretches, distorts and flips it, changes brightness and contrast, and
     adds noise. Values between pixels are interpolated, the borders are repeated beyond the image.
    
     As in NNabla there is no gradient. Scale, stretching and contrast are uniform in their logarithms, all else is uniform in itself; the
     deviation of the noise is another one for each image, at most `noise`.

    Args:
        x: Images of shape (.., channels, height, width).
        shape: Sizes of the last axes of the result; None: x's.
        pad: Pixels above and below, and at both sides, that count as part of the image when a place is chosen.
        min_scale: The least scale.
        max_scale: The largest scale.
        angle: The largest turn to both sides, in radians.
        aspect_ratio: The largest ratio by which height and width are stretched against each other.
        distortion: How far images are distorted from or to their middle.
        flip_lr: Exchange left and right in half of the images.
        flip_ud: Exchange top and bottom in half of the images.
        brightness: The most that is added to, or taken from, the values.
        brightness_each: Whether that is another number for each channel.
        contrast: The most that the distance of values to contrast_center is multiplied or divided by.
        contrast_center: The value that contrast leaves as it is.
        contrast_each: Whether the contrast is another one for each channel.
        noise: The largest standard deviation of normal noise.
        seed: Seed of this function; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of the given size.

    Raises:
        ValueError: For scales, ratios or contrasts that are not above 0, and numbers that are not finite.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A(np.ones((2, 3, 8, 8)))
    >>> F.image_augmentation(x, shape=(3, 6, 6), angle=0.1, flip_lr=True).shape
    (2, 3, 6, 6)
    """
    return _call(_IMAGE_AUGMENTATION, (x,), (shape, pad, min_scale, max_scale, angle, aspect_ratio, distortion, flip_lr, flip_ud, brightness, brightness_each, contrast, contrast_center, contrast_each, noise, seed), n_outputs, outputs)


_SIGMOID_CROSS_ENTROPY = _index('sigmoid_cross_entropy')


@_checked
def sigmoid_cross_entropy(x: A, target: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cross entropy of sigmoid(x) and labels, `y = -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))`, without overflow.
     Labels are cut to whole numbers, and get no gradient.

    Args:
        x: N-D array of scores.
        target: N-D array of labels, 0 or 1, of x's shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, labels = A([-1, 0, 2]), A([0, 1, 1])
    >>> print(F.sigmoid_cross_entropy(x, labels).data.round(3))
    [0.313 0.693 0.127]
    """
    return _call(_SIGMOID_CROSS_ENTROPY, (x, target), (), n_outputs, outputs)


_BINARY_CROSS_ENTROPY = _index('binary_cross_entropy')


@_checked
def binary_cross_entropy(x: A, target: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cross entropy of probabilities and labels, `y = -t log(x) - (1 - t) log(1 - x)`. Logarithms are of 1.2e-38 at
     least.

    Args:
        x: N-D array of probabilities.
        target: N-D array of labels from 0 to 1, of x's shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> p, labels = A([0.1, 0.5, 0.9]), A([0, 1, 1])
    >>> print(F.binary_cross_entropy(p, labels).data.round(3))
    [0.105 0.693 0.105]
    """
    return _call(_BINARY_CROSS_ENTROPY, (x, target), (), n_outputs, outputs)


_SOFTMAX_CROSS_ENTROPY = _index('softmax_cross_entropy')


@_checked
def softmax_cross_entropy(x: A, target: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cross entropy of softmax(x) and labels, `y = -log(softmax(x)[target])` along an axis, without overflow. Where the
     label is negative, loss and gradient are 0. A label that is NaN or beyond the classes is an error on the CPU; a GPU, which
     would have to wait for the check, gives NaN.

    Args:
        x: N-D array of scores, N > 0.
        target: Labels from 0 on; N-D array of x's shape, but 1 at the axis.
        axis: Axis of the classes; None: the last one. May count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of target's shape.

    Raises:
        ValueError: For an axis beyond x's, or a label of no class (on a GPU: NaN).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, labels = A([[0, 0], [0, 3]]), A([[0], [1]])
    >>> print(F.softmax_cross_entropy(x, labels).data.round(3))
    [[0.693]
     [0.049]]
    """
    return _call(_SOFTMAX_CROSS_ENTROPY, (x, target), (axis,), n_outputs, outputs)


_CATEGORICAL_CROSS_ENTROPY = _index('categorical_cross_entropy')


@_checked
def categorical_cross_entropy(x: A, target: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Cross entropy of probabilities and labels, `y = -log(x[target])` along an axis; the logarithm is of 1.2e-38 at
     least. Where the label is negative, loss and gradient are 0. A label that is NaN or beyond the classes is an error on the
     CPU; a GPU, which would have to wait for the check, gives NaN.

    Args:
        x: N-D array of probabilities, N > 0.
        target: Labels from 0 on; N-D array of x's shape, but 1 at the axis.
        axis: Axis of the classes; None: the last one. May count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of target's shape.

    Raises:
        ValueError: For an axis beyond x's, or a label of no class (on a GPU: NaN).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> p, labels = A([[0.5, 0.5], [0.1, 0.9]]), A([[0], [1]])
    >>> print(F.categorical_cross_entropy(p, labels).data.round(3))
    [[0.693]
     [0.105]]
    """
    return _call(_CATEGORICAL_CROSS_ENTROPY, (x, target), (axis,), n_outputs, outputs)


_SQUARED_ERROR = _index('squared_error')


@_checked
def squared_error(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Squared error, `y = (x0 - x1)^2`, element by element.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2]), A([1, 5])
    >>> print(F.squared_error(a, b).data)
    [0. 9.]
    """
    return _call(_SQUARED_ERROR, (x0, x1), (), n_outputs, outputs)


_ABSOLUTE_ERROR = _index('absolute_error')


@_checked
def absolute_error(x0: A, x1: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Absolute error, `y = |x0 - x1|`, element by element; where they are equal the gradient of x0 is -1.

    Args:
        x0: N-D array.
        x1: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([1, 2]), A([1, 5])
    >>> print(F.absolute_error(a, b).data)
    [0. 3.]
    """
    return _call(_ABSOLUTE_ERROR, (x0, x1), (), n_outputs, outputs)


_HUBER_LOSS = _index('huber_loss')


@_checked
def huber_loss(x0: A, x1: A, delta: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Huber loss (Huber, 1964): with `d = x0 - x1`, `y = d^2` where `|d| < delta`, else `delta (2 |d| - delta)`.

    Args:
        x0: N-D array.
        x1: N-D array.
        delta: Where the square ends.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([0, 0]), A([0.5, 5])
    >>> print(F.huber_loss(a, b, delta=1.0).data)
    [0.25 9.  ]
    """
    return _call(_HUBER_LOSS, (x0, x1), (delta,), n_outputs, outputs)


_EPSILON_INSENSITIVE_LOSS = _index('epsilon_insensitive_loss')


@_checked
def epsilon_insensitive_loss(x0: A, x1: A, epsilon: float, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Epsilon-insensitive loss, `y = max(|x0 - x1| - epsilon, 0)`.

    Args:
        x0: N-D array.
        x1: N-D array.
        epsilon: Differences up to this cost nothing.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A([0, 0]), A([0.5, 5])
    >>> print(F.epsilon_insensitive_loss(a, b, epsilon=1.0).data)
    [0. 4.]
    """
    return _call(_EPSILON_INSENSITIVE_LOSS, (x0, x1), (epsilon,), n_outputs, outputs)


_KL_MULTINOMIAL = _index('kl_multinomial')


@_checked
def kl_multinomial(p: A, q: A, base_axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Kullback-Leibler divergence of multinomial distributions, `D = sum p (log(p + e) - log(q + e))`, e = 1e-8.

    Args:
        p: N-D array of probabilities: those of one distribution from base_axis on.
        q: Probabilities of the other ones, of p's shape.
        base_axis: First axis of the probabilities; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        D: Array of shape p.shape[:base_axis] + (1,).

    Raises:
        ValueError: For a base_axis that p does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> p, q = A([[0.5, 0.5], [0.5, 0.5]]), A([[0.5, 0.5], [0.1, 0.9]])
    >>> print(F.kl_multinomial(p, q).data.round(3))
    [[0.   ]
     [0.511]]
    """
    return _call(_KL_MULTINOMIAL, (p, q), (base_axis,), n_outputs, outputs)


_BINARY_CONNECT_AFFINE = _index('binary_connect_affine')


@_checked
def binary_connect_affine(x: A, weight: A, binary_weight: A, bias: A | None = None, base_axis: int = 1, quantize_zero_to: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """An affine layer with the signs of its weight (BinaryConnect, Courbariaux et al., 2015), `y = x sign(w) + b`. Each forward
     pass writes the signs to binary_weight. The gradient passes straight through the signs.

    Args:
        x: Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.
        weight: Weight of shape (D_B * .. * D_N, L_0, .., L_I).
        binary_weight: Array of the weight's shape; forward writes the signs to it.
        bias: Bias of shape (L_0, .., L_I).
        base_axis: First axis that belongs to the vector; may count from the end.
        quantize_zero_to: The sign of 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Output of shape (M_0, .., M_{B-1}, L_0, .., L_I).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w, binary = A([[1, 2]]), A([[0.3], [-0.7]]), A([[0.0], [0.0]])
    >>> print(F.binary_connect_affine(x, w, binary).data)
    [[-1.]]
    >>> print(binary.data)
    [[ 1.]
     [-1.]]
    """
    return _call(_BINARY_CONNECT_AFFINE, (x, weight, binary_weight, bias), (base_axis, quantize_zero_to), n_outputs, outputs)


_BINARY_CONNECT_CONVOLUTION = _index('binary_connect_convolution')


@_checked
def binary_connect_convolution(x: A, weight: A, binary_weight: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, quantize_zero_to: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A convolution with the signs of its weight (BinaryConnect, Courbariaux et al., 2015). Each forward pass writes the signs to
     binary_weight. The gradient passes straight through the signs.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes.
        weight: Kernels of shape (O, C / group, kernel..).
        binary_weight: Array of the weight's shape; forward writes the signs to it.
        bias: Bias of shape (O,).
        base_axis: Number of leading axes that only repeat the convolution; may count from the end.
        pad: Zeros on both ends of each spatial axis; None: no padding.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are convolved apart.
        quantize_zero_to: The sign of 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., O, new spatial..).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w, binary = A([[[1, 2, 4]]]), A([[[0.3, -0.7]]]), A([[[0.0, 0.0]]])
    >>> print(F.binary_connect_convolution(x, w, binary).data)
    [[[-1. -2.]]]
    >>> print(binary.data)
    [[[ 1. -1.]]]
    """
    return _call(_BINARY_CONNECT_CONVOLUTION, (x, weight, binary_weight, bias), (base_axis, pad, stride, dilation, group, quantize_zero_to), n_outputs, outputs)


_BINARY_WEIGHT_AFFINE = _index('binary_weight_affine')


@_checked
def binary_weight_affine(x: A, weight: A, binary_weight: A, alpha: A, bias: A | None = None, base_axis: int = 1, quantize_zero_to: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """An affine layer with the signs of its weight and a scale for each output (XNOR-Net, Rastegari et al., 2016),
     `y = x (sign(w) alpha) + b`, alpha being the mean `|w|` of each output. Each forward pass writes the signs to binary_weight, and
     alpha. The gradient passes straight through signs and scales: that of the weight is as if it had been used itself.

    Args:
        x: Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.
        weight: Weight of shape (D_B * .. * D_N, L_0, .., L_I).
        binary_weight: Array of the weight's shape; forward writes the signs to it.
        alpha: Array of L_0 * .. * L_I elements; forward writes the scales to it.
        bias: Bias of shape (L_0, .., L_I).
        base_axis: First axis that belongs to the vector; may count from the end.
        quantize_zero_to: The sign of 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Output of shape (M_0, .., M_{B-1}, L_0, .., L_I).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[1, 2]]), A([[0.25], [-0.75]])
    >>> binary, scale = A([[0.0], [0.0]]), A([0.0])
    >>> print(F.binary_weight_affine(x, w, binary, scale).data)
    [[-0.5]]
    >>> print(scale.data)
    [0.5]
    """
    return _call(_BINARY_WEIGHT_AFFINE, (x, weight, binary_weight, alpha, bias), (base_axis, quantize_zero_to), n_outputs, outputs)


_BINARY_WEIGHT_CONVOLUTION = _index('binary_weight_convolution')


@_checked
def binary_weight_convolution(x: A, weight: A, binary_weight: A, alpha: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, quantize_zero_to: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A convolution with the signs of its weight and a scale for each output channel (XNOR-Net, Rastegari et al., 2016), alpha, the mean
     `|w|` of each. Each forward pass writes the signs to binary_weight, and alpha. The gradient passes straight through signs
     and scales: that of the weight is as if it had been used itself.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes.
        weight: Kernels of shape (O, C / group, kernel..).
        binary_weight: Array of the weight's shape; forward writes the signs to it.
        alpha: Array of O elements; forward writes the scales to it.
        bias: Bias of shape (O,).
        base_axis: Number of leading axes that only repeat the convolution; may count from the end.
        pad: Zeros on both ends of each spatial axis; None: no padding.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are convolved apart.
        quantize_zero_to: The sign of 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., O, new spatial..).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[[1, 2, 4]]]), A([[[0.25, -0.75]]])
    >>> binary, scale = A([[[0.0, 0.0]]]), A([0.0])
    >>> print(F.binary_weight_convolution(x, w, binary, scale).data)
    [[[-0.5 -1. ]]]
    >>> print(scale.data)
    [0.5]
    """
    return _call(_BINARY_WEIGHT_CONVOLUTION, (x, weight, binary_weight, alpha, bias), (base_axis, pad, stride, dilation, group, quantize_zero_to), n_outputs, outputs)


_INQ_AFFINE = _index('inq_affine')


@_checked
def inq_affine(x: A, weight: A, indicator_fixedweights: A, bias: A | None = None, base_axis: int = 1, num_bits: int = 4, inq_iterations: Sequence[int] = (), selection_algorithm: str = 'largest_abs', seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """An affine layer whose weights are quantized incrementally (INQ, Zhou et al., 2017). The forward passes whose numbers, from 0,
     are in inq_iterations fix half of the weights that are not fixed yet, that of the last number all. A weight that is fixed becomes
     a power of two, or 0, in the array of the weight itself, and 1 in that of the indicators; each forward pass sets it to that value again. The
     powers are the `2^(num_bits - 2)` up to the one for the largest `|w|`. Gradients are the layer's.

    Args:
        x: Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.
        weight: Weight of shape (D_B * .. * D_N, L_0, .., L_I). Forward writes what is fixed.
        indicator_fixedweights: Array of the weight's shape: 1 where the weight is fixed, else 0. Forward writes
            it.
        bias: Bias of shape (L_0, .., L_I).
        base_axis: First axis that belongs to the vector; may count from the end.
        num_bits: Bits of a weight, 2 or more: one for the sign, one for zero.
        inq_iterations: Numbers of the forward passes that fix weights.
        selection_algorithm: Which half is fixed: 'largest_abs' or 'random'.
        seed: Seed of the random choice; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Output of shape (M_0, .., M_{B-1}, L_0, .., L_I).

    Raises:
        ValueError: For num_bits below 2, or another algorithm than 'largest_abs' and 'random'.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w, fixed = A([[1.0, 1.0]]), A([[0.9], [0.3]]), A([[0], [0]])
    >>> print(F.inq_affine(x, w, fixed, num_bits=4, inq_iterations=(0,)).data)
    [[1.25]]
    >>> print(fixed.data)
    [[1]
     [1]]
    """
    return _call(_INQ_AFFINE, (x, weight, indicator_fixedweights, bias), (base_axis, num_bits, inq_iterations, selection_algorithm, seed), n_outputs, outputs)


_INQ_CONVOLUTION = _index('inq_convolution')


@_checked
def inq_convolution(x: A, weight: A, indicator_fixedweights: A, bias: A | None = None, base_axis: int = 1, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, num_bits: int = 4, inq_iterations: Sequence[int] = (), selection_algorithm: str = 'largest_abs', seed: int = -1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """A convolution whose weights are quantized incrementally (INQ, Zhou et al., 2017). The forward passes whose numbers, from 0,
     are in inq_iterations fix half of the weights that are not fixed yet, that of the last number all. A weight that is fixed becomes
     a power of two, or 0, in the array of the weight itself, and 1 in that of the indicators; each forward pass sets it to that value again. The
     powers are the `2^(num_bits - 2)` up to the one for the largest `|w|`. Gradients are the layer's.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes.
        weight: Kernels of shape (O, C / group, kernel..). Forward writes what is fixed.
        indicator_fixedweights: Array of the weight's shape: 1 where the weight is fixed, else 0. Forward writes
            it.
        bias: Bias of shape (O,).
        base_axis: Number of leading axes that only repeat the convolution; may count from the end.
        pad: Zeros on both ends of each spatial axis; None: no padding.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are convolved apart.
        num_bits: Bits of a weight, 2 or more: one for the sign, one for zero.
        inq_iterations: Numbers of the forward passes that fix weights.
        selection_algorithm: Which half is fixed: 'largest_abs' or 'random'.
        seed: Seed of the random choice; -1: the global random stream.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., O, new spatial..).

    Raises:
        ValueError: For num_bits below 2, or another algorithm than 'largest_abs' and 'random'.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w, fixed = A([[[1.0, 1.0]]]), A([[[0.9, 0.3]]]), A([[[0, 0]]])
    >>> print(F.inq_convolution(x, w, fixed, num_bits=4, inq_iterations=(0,)).data)
    [[[1.25]]]
    >>> print(fixed.data)
    [[[1 1]]]
    """
    return _call(_INQ_CONVOLUTION, (x, weight, indicator_fixedweights, bias), (base_axis, pad, stride, dilation, group, num_bits, inq_iterations, selection_algorithm, seed), n_outputs, outputs)


_FIXED_POINT_QUANTIZE = _index('fixed_point_quantize')


def _fixed_point_quantize(x: A, sign: bool = True, n: int = 8, delta: float = 0.0625, ste_fine_grained: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The nearest number of a fixed-point format, `y = round(x / delta) delta` within its limits, which are
     `+-(2^(n-1) - 1) delta` with a sign, and 0 and `(2^n - 1) delta` without. Halves are rounded away from zero; NaN stays.
     The gradient passes straight through; with ste_fine_grained only where x is within the limits.

    Args:
        x: N-D array.
        sign: Whether there are negative numbers; the sign is one of the bits.
        n: Number of bits.
        delta: The step.
        ste_fine_grained: Whether x beyond the limits has gradient 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_FIXED_POINT_QUANTIZE, (x,), (sign, n, delta, ste_fine_grained), n_outputs, outputs)


_MIN_MAX_QUANTIZE = _index('min_max_quantize')


def _min_max_quantize(x: A, qr_min: A, qr_max: A, ql_min: A, ql_max: A, decay: float = 0.999, x_min_max: bool = False, ema: bool = False, ste_fine_grained: bool = True, eps: float = 0.01, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Quantizes a range linearly (Jacob et al., 2018), `y = round((clip(x) - low) / scale) scale + low` with
     `scale = (qr_max - qr_min) / (ql_max - ql_min)`. The range [low, high] that x is clipped to is that from qr_min to qr_max, moved so
     that 0 is a level: `low = (ql_min - zero) scale`, `high = (ql_max - zero) scale`, zero being `ql_min - qr_min / scale`
     rounded, and clipped to the levels. With x_min_max each forward pass sets qr_min and qr_max to the least and the largest x, with
     ema too to a moving average of them, `decay qr + (1 - decay) x`. Always qr_max becomes `qr_min + eps` where it is less. The
     gradient of x passes straight through; with ste_fine_grained only where x is in the range. That of qr_min is the
     sum where x is below the range, that of qr_max where it is above; with x_min_max or ema they have none.

    Args:
        x: N-D array.
        qr_min: Least number of the range, of a shape that broadcasts to x's. Forward may write it.
        qr_max: Largest number of the range, of qr_min's shape. Forward may write it.
        ql_min: The least level, of qr_min's shape; 0, say.
        ql_max: The largest level, of qr_min's shape; 255, say.
        decay: How much of the range each forward pass keeps, with x_min_max and ema.
        x_min_max: Take the range from x.
        ema: The range is a moving average.
        ste_fine_grained: Whether x beyond the range has gradient 0.
        eps: The least size of the range.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
        range: Of the builder in Rust alone: low and high, of qr_min's shape.
    """
    return _call(_MIN_MAX_QUANTIZE, (x, qr_min, qr_max, ql_min, ql_max), (decay, x_min_max, ema, ste_fine_grained, eps), n_outputs, outputs)


_POW2_QUANTIZE = _index('pow2_quantize')


def _pow2_quantize(x: A, sign: bool = True, with_zero: bool = True, n: int = 8, m: int = 1, ste_fine_grained: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The nearest power of two in logarithms, `y = sign(x) 2^round(log2 |x|)`, the exponent being one of the `2^b` from
     `m - 2^b + 1` to m, where b is n less a bit for the sign and a bit for zero. With a zero, magnitudes below
     `2^-0.5` of the least power become 0. Without a sign, negative numbers become the least one. NaN stays.
     The gradient passes straight through; with ste_fine_grained not where `|x|` is rounded to a power above `2^m`, nor,
     without a sign, where x is negative.

    Args:
        x: N-D array.
        sign: Whether there are negative numbers; the sign is one of the bits.
        with_zero: Whether 0 is one of the numbers, which takes a bit.
        n: Number of bits.
        m: The largest number is `2^m`.
        ste_fine_grained: Whether x beyond the limits has gradient 0.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_POW2_QUANTIZE, (x,), (sign, with_zero, n, m, ste_fine_grained), n_outputs, outputs)


_PRUNE = _index('prune')


@_checked
def prune(x: A, rate: float = 0.9, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Sets a share of the numbers to 0, those of the smallest magnitude (Han et al., 2015): `y = x` where `|x|` is at least the element number
     `rate (size - 1)`, cut to a whole number, of the sorted magnitudes. NaN stays. The gradient passes straight through.

    Args:
        x: N-D array.
        rate: The share, from 0 to 1; 1 leaves nothing.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For a rate that is not from 0 to 1.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([1, -4, 2, 3])
    >>> print(F.prune(x, rate=0.5).data)
    [ 0. -4.  2.  3.]
    """
    return _call(_PRUNE, (x,), (rate,), n_outputs, outputs)


_QUANTIZE_LINEAR = _index('quantize_linear')


def _quantize_linear(x: A, scale: A, zero_point: A, round_mode: str = 'HALF_AWAY_FROM_ZERO', narrow_range: bool = False, dtype: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Quantizes linearly, `y = saturate(round(x / scale) + round(saturate(zero_point)))`: whole numbers of the range of `dtype`, held in
     the context's floating-point type. The gradient of x passes through the rounding and the limits; scale and zero_point
     have none.

    Args:
        x: N-D array.
        scale: Array that broadcasts to x's shape: one scale for all, or one a channel.
        zero_point: Array that broadcasts to x's shape: what 0 becomes.
        round_mode: 'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN'.
        narrow_range: Leave out the least number of the range.
        dtype: NumPy's number of the type whose range is used: 1 for int8, 2 for uint8.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_QUANTIZE_LINEAR, (x, scale, zero_point), (round_mode, narrow_range, dtype), n_outputs, outputs)


_DEQUANTIZE_LINEAR = _index('dequantize_linear')


@_checked
def dequantize_linear(x: A, scale: A, zero_point: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Undoes `quantize_linear`, `y = (x - zero_point) scale`. Only x has a gradient.

    Args:
        x: N-D array of quantized numbers.
        scale: Array that broadcasts to x's shape.
        zero_point: Array that broadcasts to x's shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, scale, zero = A([8, 11, 255]), A([0.5]), A([10])
    >>> print(F.dequantize_linear(x, scale, zero).data)
    [ -1.    0.5 122.5]
    """
    return _call(_DEQUANTIZE_LINEAR, (x, scale, zero_point), (), n_outputs, outputs)


_INTERPOLATE = _index('interpolate')


def _interpolate(x: A, output_size: Sequence[int], mode: str, align_corners: bool = True, half_pixel: bool = False, half_pixel_for_nn: bool = False, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Resamples the last axes to other sizes, by linear interpolation or with the nearest element. Element j of an axis of n that
     becomes m is at the place `j n / m`; with align_corners at `j (n - 1) / (m - 1)`, with half_pixel at `(j + 1/2) n / m - 1/2`.
     The nearest element is the one before that place.

    Args:
        x: N-D array; its last axes (before the channels, if channel_last) are resampled.
        output_size: New sizes of the last axes.
        mode: 'linear' or 'nearest'.
        align_corners: Whether the first and the last elements stay what they are.
        half_pixel: Whether places are those of the middles of elements.
        half_pixel_for_nn: For 'nearest': the place is `(j + 1/2) n / m`, whatever else is said.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the new sizes.
    """
    return _call(_INTERPOLATE, (x,), (output_size, mode, align_corners, half_pixel, half_pixel_for_nn, channel_last), n_outputs, outputs)


_ONNX_RESIZE = _index('onnx_resize')


@_checked
def onnx_resize(x: A, roi: Sequence[float] = (), scales: Sequence[float] = (), sizes: Sequence[int] = (), mode: str = 'nearest', coordinate_transformation_mode: str = 'half_pixel', cubic_coeff_a: float | None = None, exclude_outside: int | None = None, extrapolation_value: float | None = None, nearest_mode: str = 'round_prefer_floor', n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Resamples axes to other sizes, as the operator Resize of ONNX (https://onnx.ai/onnx/operators/onnx__Resize.html).

    Args:
        x: N-D array.
        roi: For 'tf_crop_and_resize': where each axis begins, then where each ends; 1 is the last element.
        scales: Factors of all sizes; these or sizes are given.
        sizes: New sizes of all axes.
        mode: 'nearest', 'linear' or 'cubic'.
        coordinate_transformation_mode: 'half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric',
            'tf_half_pixel_for_nn' or 'tf_crop_and_resize'.
        cubic_coeff_a: Coefficient of the cubic polynomial; None: -0.75.
        exclude_outside: Not 0: cubic interpolation leaves out what is beyond the ends; None: 0.
        extrapolation_value: Value beyond the ends for 'tf_crop_and_resize'; None: 0.
        nearest_mode: 'round_prefer_floor', 'round_prefer_ceil', 'floor' or 'ceil'.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the new sizes.

    Raises:
        ValueError: For neither or both of sizes and scales, a mode that is not known, or a result without
            elements.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[0, 2]])
    >>> print(F.onnx_resize(x, scales=(1, 2), mode="nearest").data)
    [[0. 0. 2. 2.]]
    """
    return _call(_ONNX_RESIZE, (x,), (roi, scales, sizes, mode, coordinate_transformation_mode, cubic_coeff_a, exclude_outside, extrapolation_value, nearest_mode), n_outputs, outputs)


_FFT = _index('fft')


@_checked
def fft(x: A, signal_ndim: int, normalized: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Discrete Fourier transform of complex numbers, `y[k] = sum over n of x[n] exp(-2 pi i k n / N)` over each of the last axes.

    Args:
        x: N-D array; its last axis, of size 2, has real and imaginary part.
        signal_ndim: How many axes before it are transformed, 1 or more.
        normalized: Divide by the square root of the number of elements of a signal.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For a signal_ndim below 1, or more than x has axes before its last one, which is of 2.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 0], [2, 0], [3, 0], [4, 0]])
    >>> print(F.fft(x, 1).data)
    [[10.  0.]
     [-2.  2.]
     [-2.  0.]
     [-2. -2.]]
    """
    return _call(_FFT, (x,), (signal_ndim, normalized), n_outputs, outputs)


_IFFT = _index('ifft')


@_checked
def ifft(x: A, signal_ndim: int, normalized: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Inverse discrete Fourier transform of complex numbers, `y[n] = 1/N sum over k of x[k] exp(2 pi i k n / N)` over each of the
     last axes.

    Args:
        x: N-D array; its last axis, of size 2, has real and imaginary part.
        signal_ndim: How many axes before it are transformed, 1 or more.
        normalized: Divide by the square root of the number of elements of a signal instead of by their number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For a signal_ndim below 1, or more than x has axes before its last one, which is of 2.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[10, 0], [-2, 2], [-2, 0], [-2, -2]])
    >>> print(F.ifft(x, 1).data)
    [[1. 0.]
     [2. 0.]
     [3. 0.]
     [4. 0.]]
    """
    return _call(_IFFT, (x,), (signal_ndim, normalized), n_outputs, outputs)


_STFT = _index('stft')


def _stft(x: A, window_size: int, stride: int, fft_size: int, window_type: str = 'hanning', center: bool = True, pad_mode: str = 'reflect', as_istft_backward: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Short-time Fourier transform: the spectra of frames of fft_size samples, stride apart, each times a window.

    Args:
        x: Signals of shape (.., samples).
        window_size: Samples of the window, fft_size at most; it is in the middle of the frame, with zeros
            around.
        stride: Samples from the beginning of a frame to that of the next.
        fft_size: Samples of a frame.
        window_type: 'hanning', 'hamming' or 'rectangular'.
        center: Whether fft_size // 2 samples are put before and after the signal, so that frames are around
            their samples.
        pad_mode: What these are: 'reflect', the signal mirrored, or 'constant', zeros.
        as_istft_backward: Computes the gradient of `istft` instead, with x the gradient of its result.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y_r: Real parts, of shape (.., fft_size // 2 + 1, frames).
        y_i: Imaginary parts, of y_r's shape.
    """
    return _call(_STFT, (x,), (window_size, stride, fft_size, window_type, center, pad_mode, as_istft_backward), n_outputs, outputs)


_ISTFT = _index('istft')


def _istft(y_r: A, y_i: A, window_size: int, stride: int, fft_size: int, window_type: str = 'hanning', center: bool = True, pad_mode: str = 'reflect', as_stft_backward: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Inverse short-time Fourier transform: frames from their spectra, times the window, added up, and divided by the sum of the
     squares of the windows.

    Args:
        y_r: Real parts of spectra, of shape (.., fft_size // 2 + 1, frames).
        y_i: Imaginary parts, of y_r's shape.
        window_size: As of `stft`.
        stride: As of `stft`.
        fft_size: As of `stft`.
        window_type: As of `stft`.
        center: Whether fft_size // 2 samples are cut off both ends.
        pad_mode: Used with as_stft_backward only: as of `stft`.
        as_stft_backward: Computes the gradient of `stft` instead, with y_r and y_i the gradients of its
            results.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        x: Signals of shape (.., stride (frames - 1) + fft_size), less what is cut off.
    """
    return _call(_ISTFT, (y_r, y_i), (window_size, stride, fft_size, window_type, center, pad_mode, as_stft_backward), n_outputs, outputs)


_AFFINE_GRID = _index('affine_grid')


@_checked
def affine_grid(theta: A, size: Sequence[int], align_corners: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """For each image the places that an affine map sends its elements' places to, for `warp_by_grid` (Jaderberg et al., 2015). Along an axis places go from -1
     to 1, which are the image's edges, or, with align_corners, its first and its last element.

    Args:
        theta: Maps of shape (B, 2, 3) for images, (B, 3, 4) for volumes.
        size: Height and width, or depth, height and width.
        align_corners: Whether -1 and 1 are the first and the last element.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        grid: Places of shape (B, H, W, 2) as (x, y), or (B, D, H, W, 3) as (x, y, z).

    Raises:
        ValueError: For a size that is not two or three numbers of 1 or more.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> theta = A([[[1, 0, 0.5], [0, 1, 0]]])
    >>> grid = F.affine_grid(theta, (2, 2), align_corners=True)
    >>> grid.shape
    (1, 2, 2, 2)
    >>> print(grid[0, 0].data)
    [[-0.5 -1. ]
     [ 1.5 -1. ]]
    """
    return _call(_AFFINE_GRID, (theta,), (size, align_corners), n_outputs, outputs)


_WARP_BY_GRID = _index('warp_by_grid')


@_checked
def warp_by_grid(x: A, grid: A, mode: str = 'linear', padding_mode: str = 'zero', align_corners: bool = False, channel_last: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Images read at the places of a grid (Jaderberg et al., 2015). Along an axis places go from -1 to 1, which are the image's
     edges, or, with align_corners, its first and its last element.

    Args:
        x: Images of shape (B, C, H, W), or volumes (B, C, D, H, W); (B, .., C) if channel_last.
        grid: Places of shape (B, H', W', 2) as (x, y), or (B, D', H', W', 3) as (x, y, z).
        mode: 'linear', or 'nearest', which has no gradient by the grid.
        padding_mode: What lies beyond the image: 'zero', 'repeat', its elements at the ends, or 'reflect', the
            image mirrored.
        align_corners: Whether -1 and 1 are the first and the last element.
        channel_last: Whether the channels are the last axis.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images with the grid's sizes.

    Raises:
        ValueError: For a mode or padding_mode that is not known.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, turn = A([[[[1, 2], [3, 4]]]]), A([[[0, -1, 0], [1, 0, 0]]])
    >>> grid = F.affine_grid(turn, (2, 2), align_corners=True)
    >>> print(F.warp_by_grid(x, grid, align_corners=True).data)
    [[[[2. 4.]
       [1. 3.]]]]
    """
    return _call(_WARP_BY_GRID, (x, grid), (mode, padding_mode, align_corners, channel_last), n_outputs, outputs)


_WARP_BY_FLOW = _index('warp_by_flow')


@_checked
def warp_by_flow(data: A, flow: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Images moved by a flow: each element is read, between elements linearly, at its own place and the distance that the flow
     says. Beyond the image are the elements at its ends.

    Args:
        data: Images of shape (N, C, H, W).
        flow: Distances in elements, of shape (N, 2, H, W), as (x, y).
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        warped_image: Images of data's shape.

    Raises:
        ValueError: For a flow of another number of components than 2 or 3.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[[1, 2, 3], [4, 5, 6]]]])
    >>> flow = A([[np.ones((2, 3)), np.zeros((2, 3))]])
    >>> print(F.warp_by_flow(x, flow).data)
    [[[[2. 3. 3.]
       [5. 6. 6.]]]]
    """
    return _call(_WARP_BY_FLOW, (data, flow), (), n_outputs, outputs)


_VAT_NOISE = _index('vat_noise')


@_checked
def vat_noise(x: A, w: A, base_axis: int = 1, eps: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Noise for virtual adversarial training (Miyato et al., 2015): `y = eps x / sqrt(sum x^2 + 1e-8)`, with a sum for each sample.
    
     No gradient goes back. Instead backward writes eps times the output's gradient into the data of w, from where it may be x the next time.

    Args:
        x: Noise, an N-D array.
        w: Array of x's shape, whose data backward writes.
        base_axis: The axes before it number the samples; it may count from the end.
        eps: The norm of a sample of the result.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For a base_axis that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, w = A([[3, 4], [0, 2]]), A([[0, 0], [0, 0]])
    >>> print(F.vat_noise(x, w, eps=1.0).data)
    [[0.6 0.8]
     [0.  1. ]]
    """
    return _call(_VAT_NOISE, (x, w), (base_axis, eps), n_outputs, outputs)


_NMS_DETECTION2D = _index('nms_detection2d')


@_checked
def nms_detection2d(x: A, thresh: float | None = None, nms: float | None = None, nms_per_class: bool | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Suppresses boxes of a detector that overlap better ones (Redmon and Farhadi, YOLO9000, 2016). Probabilities become scores, their
     products with the objectness; what is below `thresh`, objectness too, and what is suppressed becomes 0.
    
     As in NNabla there is no gradient.

    Args:
        x: Boxes of shape (B, N, 5 + C): center x and y, width, height, objectness, and the probabilities of C
            classes.
        thresh: The least score; None: 0.5.
        nms: A box is suppressed by a better one if the area of both together is more than this part of that of
            either; None: 0.45.
        nms_per_class: Compare the scores of each class. If not, compare boxes by their objectness; that of
            suppressed ones becomes 0, too. None: True.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Array of x's shape.

    Raises:
        ValueError: For an x without three axes and six columns at least.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> boxes = A([[[0.5, 0.5, 1, 1, 1, 0.9], [0.5, 0.6, 1, 1, 1, 0.8], [5, 5, 1, 1, 1, 0.7]]])
    >>> y = F.nms_detection2d(boxes, thresh=0.5, nms=0.45)
    >>> print(y[0, :, 5].data)
    [0.9 0.  0.7]
    """
    return _call(_NMS_DETECTION2D, (x,), (thresh, nms, nms_per_class), n_outputs, outputs)


_ONNX_NON_MAX_SUPPRESSION = _index('onnx_non_max_suppression')


def _onnx_non_max_suppression(boxes: A, scores: A, center_point_box: int | None = None, max_output_boxes_per_class: int | None = None, iou_threshold: float | None = None, score_threshold: float | None = None, rows: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """The boxes that are left of each class when those that overlap better ones are suppressed, from the best on. No gradient.

    Args:
        boxes: Boxes of shape (B, N, 4).
        scores: Scores of shape (B, C, N).
        center_point_box: 0: boxes are two corners, y1, x1, y2, x2; 1: center and size, x, y, w, h. None: 0.
        max_output_boxes_per_class: How many are left of a class at most; None: 0.
        iou_threshold: A box is suppressed if the area of both together is more than this part of that of
            either; None: 0.
        score_threshold: The least score; None: 0.
        rows: How many are left; -1: as many as there may be.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Rows of batch, class and box: of shape (boxes that are left, 3).
    """
    return _call(_ONNX_NON_MAX_SUPPRESSION, (boxes, scores), (center_point_box, max_output_boxes_per_class, iou_threshold, score_threshold, rows), n_outputs, outputs)


_PATCH_CORRELATION = _index('patch_correlation')


def _patch_correlation(x1: A, x2: A, patch: Sequence[int] = (1, 1), shift: Sequence[int] = (0, 0), patch_step: Sequence[int] = (1, 1), shift_step: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0, 0, 0), n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """Compares patches of two images by the sums of their products, at each place and for each shift of the second one (Fischer et al.,
     FlowNet, 2015).

    Args:
        x1: Images of shape (N, H, W, C).
        x2: Images of x1's shape.
        patch: Height and width of a patch.
        shift: The largest shifts, to both sides.
        patch_step: Distances of patches.
        shift_step: Distances of shifts.
        padding: Zeros above, below, before and after the images.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Sums of shape (N, H', W', vertical shifts, horizontal shifts).
    """
    return _call(_PATCH_CORRELATION, (x1, x2), (patch, shift, patch_step, shift_step, padding), n_outputs, outputs)


_TOP_N_ERROR = _index('top_n_error')


@_checked
def top_n_error(x: A, target: A, axis: int | None = None, n: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where more than n scores are at least the label's (its own counts, equal ones too, and all that are NaN; all if its
     own is), else 0. For negative labels 0. No gradient. A label that is NaN or beyond the classes is an error on the CPU; a
     GPU, which would have to wait for the check, gives NaN.

    Args:
        x: N-D array of scores, N > 0.
        target: Labels from 0 on; N-D array of x's shape, but 1 at the axis.
        axis: Axis of the classes; None: the last one. May count from the end.
        n: How many of the largest scores count as right.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: N-D array of target's shape.

    Raises:
        ValueError: For an axis beyond x's, or a label of no class (on a GPU: NaN).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, labels = A([[1, 2, 3], [3, 2, 1]]), A([[2], [1]])
    >>> print(F.top_n_error(x, labels).data)
    [[0.]
     [1.]]
    >>> print(F.top_n_error(x, labels, n=2).data)
    [[0.]
     [0.]]
    """
    return _call(_TOP_N_ERROR, (x, target), (axis, n), n_outputs, outputs)


_BINARY_ERROR = _index('binary_error')


@_checked
def binary_error(x: A, target: A, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """1 where just one of x and target is 0.5 or more, else 0. No gradient.

    Args:
        x: N-D array of probabilities.
        target: N-D array of labels, of x's shape.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the inputs' joint shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, labels = A([0.2, 0.8, 0.8]), A([0, 1, 0])
    >>> print(F.binary_error(x, labels).data)
    [0. 0. 1.]
    """
    return _call(_BINARY_ERROR, (x, target), (), n_outputs, outputs)


_CONFUSION_MATRIX = _index('confusion_matrix')


@_checked
def confusion_matrix(x: A, target: A, axis: int | None = None, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> A:
    """How often samples of each class (rows) have the largest score for which class (columns). Of equal scores the first one counts, and
     a NaN is only taken where it comes first. Labels that are negative are left out. A label that is NaN or beyond the classes is an error on
     the CPU; a GPU, which would have to wait for the check, leaves it out. No gradient.

    Args:
        x: N-D array of scores.
        target: Labels from 0 on; N-D array of x's shape, but 1 at the axis.
        axis: Axis of the classes; None: the last one. May count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: Square matrix of whole numbers.

    Raises:
        ValueError: For an axis beyond x's, or a label of no class (not counted on a GPU).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, labels = A([[1, 0], [0, 1], [0, 1]]), A([[0], [0], [1]])
    >>> print(F.confusion_matrix(x, labels).data)
    [[1 1]
     [0 1]]
    """
    return _call(_CONFUSION_MATRIX, (x, target), (axis,), n_outputs, outputs)


for _name in _composites.__all__:
    globals()[_name] = _checked(globals()[_name], is_whole=True)


def __getattr__(name: str) -> Any:
    from ._borrowed import borrowed

    return borrowed(__name__, name)
