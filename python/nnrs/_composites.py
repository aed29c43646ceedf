"""Functions of the library that are written in Python, in terms of the registered ones."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

from ._core import NdArray, Variable
from ._errors import ArgumentError, ArgumentTypeError, ShapeError, check_type, describe, message
from ._normalization import batch_normalization, layer_normalization
from ._scatter import scatter_nd
from .recompute import forget

__all__ = [
    "batch_normalization",
    "bool_gather",
    "clip_by_value",
    "forget",
    "layer_normalization",
    "scatter_nd",
    "sink",
    "split",
]

A = TypeVar("A", Variable, NdArray)

# NNabla's functions; those that this module lacks are still to come.
LATER = """
affine rnn lstm gru convolution fused_convolution depthwise_convolution deconvolution depthwise_deconvolution
deformable_convolution adaptive_separable_convolution max_pooling average_pooling global_average_pooling sum_pooling
unpooling embed roi_align sigmoid swish tanh relu leaky_relu softmax log_softmax elu selu crelu celu prelu gelu mish
relu6 hard_sigmoid hard_tanh log_sigmoid softplus softsign tanh_shrink sinc fused_batch_normalization
batch_normalization group_normalization instance_normalization layer_normalization norm_normalization
sync_batch_normalization tensor_normalization weight_normalization weight_standardization spectral_norm
mean_subtraction clip_grad_by_value clip_grad_by_norm sum cumsum mean max min norm prod cumprod reduce_sum reduce_mean
add2 add_n bc_add2 sub2 mul2 mul_n div2 pow2 add_scalar mul_scalar pow_scalar r_sub_scalar r_div_scalar r_pow_scalar
sign minimum2 maximum2 minimum_scalar maximum_scalar logical_and logical_or logical_xor equal not_equal greater_equal
greater less_equal less searchsorted logical_and_scalar logical_or_scalar logical_xor_scalar equal_scalar
not_equal_scalar greater_equal_scalar greater_scalar less_equal_scalar less_scalar logical_not isnan isinf reset_nan
reset_inf where constant arange linspace abs exp log identity batch_matmul round ceil floor sin cos tan sinh cosh asin
acos atan atan2 asinh acosh atanh erf concatenate split stack slice pad transpose broadcast broadcast_to tile one_hot
flip shift sort reshape shape matrix_diag matrix_diag_part trilu meshgrid batch_det batch_inv batch_logdet
batch_cholesky assign gather gather_nd bool_gather scatter_nd scatter_add bool_scatter bool_fill pack_padded_sequence
pad_packed_sequence nonzero interpolate onnx_resize fft ifft stft istft dropout top_k_data top_k_grad rand randint
randn rand_binomial rand_beta rand_gamma random_choice random_crop random_flip random_shift random_erase
image_augmentation sigmoid_cross_entropy binary_cross_entropy softmax_cross_entropy categorical_cross_entropy
squared_error absolute_error huber_loss epsilon_insensitive_loss kl_multinomial affine_grid warp_by_grid warp_by_flow
binary_sigmoid binary_tanh binary_connect_affine binary_connect_convolution binary_weight_affine
binary_weight_convolution inq_affine inq_convolution fixed_point_quantize min_max_quantize pow2_quantize prune
quantize_linear dequantize_linear top_n_error binary_error confusion_matrix vat_noise unlink sink nms_detection2d
onnx_non_max_suppression max_pooling_backward patch_correlation unique eye_like mod2 bit_shift einsum
"""


def clip_by_value(x: A, min: A | float, max: A | float) -> A:
    """Clip to a range, `minimum(maximum(x, min), max)`.

    Args:
        x: N-D array.
        min: Lower bound: number, Variable or NdArray of a shape that broadcasts with x.
        max: Upper bound, likewise.

    Raises:
        TypeError: For bounds of another type.
        ValueError: For bounds of a shape that does not broadcast with x.
    """
    from . import functions as F

    check_type("clip_by_value", "x", x, (Variable, NdArray), "a Variable or NdArray")
    _check_bound(x, min, "min")
    _check_bound(x, max, "max")
    lower: Any = F.maximum2(x, min) if isinstance(min, (Variable, NdArray)) else F.maximum_scalar(x, min)
    return cast(A, F.minimum2(lower, max) if isinstance(max, (Variable, NdArray)) else F.minimum_scalar(lower, max))


def _check_bound(x: Any, bound: Any, name: str) -> None:
    if not isinstance(bound, (Variable, NdArray)):
        check_type("clip_by_value", name, bound, (int, float, np.number, np.bool_), "a Variable, NdArray or number")
        if isinstance(bound, np.complexfloating):
            raise ArgumentTypeError(message("clip_by_value", name, "a real number", describe(bound)))
        return
    try:
        np.broadcast_shapes(x.shape, bound.shape)
    except ValueError:
        expected = f"a shape that broadcasts with x {x.shape}"
        raise ShapeError(message("clip_by_value", name, expected, bound.shape)) from None


def bool_gather(input: Any, mask: Any, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """The rows of `input` where the mask is not zero, in their order.

    How many there are is read from the mask's data when this is called, so that in a static graph the mask must be
    there by then; one with another number of places later is an error.

    Args:
        input: N-D array of a shape that begins with the mask's.
        mask: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: Array of shape (rows,) where the mask has all axes of input, else (rows, size of one row).
    """
    from . import functions as F

    rows = int(np.count_nonzero(np.asarray(mask))) if isinstance(mask, (Variable, NdArray)) else 0
    return F._bool_gather(input, mask, rows, n_outputs, outputs)


def sink(*x: Any, one_input_grad: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """A number, 0, that depends on all inputs: `forward` and `backward` of it run the graphs behind all of them.

    Args:
        *x: Variables, one at least.
        one_input_grad: Whether the gradient of each input is 1; else it is what the input's `.g` holds.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: 0, of shape ().

    Raises:
        ValueError: Without inputs.
    """
    from . import functions as F

    if not x:
        raise ArgumentError(message("sink", "x", "one input at least", "none"))
    return F._sink(*x, one_input_grad=one_input_grad, n_outputs=n_outputs, outputs=outputs)


def split(x: Any, axis: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Cut an array along an axis into as many pieces as the axis is long; the pieces do not have that axis.

    Args:
        x: N-D array.
        axis: Axis to cut along; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: A tuple of the pieces, also where it is one.
    """
    from . import functions as F

    pieces = F._split(x, axis, n_outputs, outputs)
    return pieces if isinstance(pieces, tuple) else (pieces,)
