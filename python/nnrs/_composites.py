"""Functions of the library that are written in Python, in terms of the registered ones."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, describe, message
from ._normalization import batch_normalization, layer_normalization
from ._scatter import scatter_nd
from .recompute import forget

__all__ = ["batch_normalization", "clip_by_value", "forget", "layer_normalization", "scatter_nd"]

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
    """
    from . import functions as F

    def bounded(value: Any, bound: Any, name: str, two: Any, scalar: Any) -> Any:
        if isinstance(bound, (Variable, NdArray)):
            return two(value, bound)
        if isinstance(bound, (int, float)):
            return scalar(value, bound)
        raise ArgumentTypeError(message("clip_by_value", name, "a Variable, NdArray or number", describe(bound)))

    lower = bounded(x, min, "min", F.maximum2, F.maximum_scalar)
    return cast(A, bounded(lower, max, "max", F.minimum2, F.minimum_scalar))
