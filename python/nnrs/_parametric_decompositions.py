"""Parametric functions whose weight is a product of small ones, which begin as a decomposition by NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import functions as F
from . import initializer as I
from ._core import Variable
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    Error,
    OutOfMemoryError,
    ShapeError,
    check_array,
    check_flag,
    check_integer,
    check_integers,
    check_number,
    check_type,
    describe,
    message,
)
from ._parametric_api import Initializer, Input, Rng, own_parameter, parametric_function_api
from .parameter import get_parameter, set_parameter


def _rank(function: str, r: Any, most: int | None = None, why: str = "the rank of the whole weight") -> int:
    check_type(function, "r", r, (int, np.integer), "int")
    if r < 1 or (most is not None and r > most):
        expected = "1 or more" if most is None else f"a number from 1 to {most}, {why}"
        raise ArgumentError(message(function, "r", expected, r))
    return int(r)


def _check_size(function: str, *shape: int) -> None:
    if math.prod(shape) >= 2**60:
        raise ShapeError(message(function, None, "a weight that fits into memory", shape))


def _whole(function: str, argument: str, init: Initializer, shape: tuple[int, ...], usual: Any) -> np.ndarray:
    """The weight that is decomposed."""
    init = usual if init is None else init
    if not isinstance(init, np.ndarray) and not callable(init):
        raise ArgumentTypeError(
            message(function, argument, "an array, or a callable that takes a shape", describe(init))
        )
    made = init if isinstance(init, np.ndarray) else np.asarray(init(shape))
    if made.size != math.prod(shape):
        raise ShapeError(message(function, argument, f"an array of shape {shape}", made.shape))
    if made.dtype.kind not in "biuf":
        raise ArgumentTypeError(message(function, argument, "real numbers", f"dtype {made.dtype}"))
    if not np.isfinite(made).all():
        raise ArgumentError(message(function, argument, "finite numbers", "NaN or infinities"))
    return made if made.dtype in (np.float32, np.float64) else made.astype(np.float64)


def _used(v: Variable, fix_parameters: bool) -> Variable:
    """A parameter as this call uses it."""
    return v.get_unlinked_variable(need_grad=not fix_parameters) if fix_parameters == v.need_grad else v


def _decomposed(function: str, argument: str, make: Callable[[], Sequence[np.ndarray]]) -> list[np.ndarray]:
    """What `make` gives. NumPy's errors are told as ours."""
    try:
        made = [np.ascontiguousarray(a) for a in make()]
    except np.linalg.LinAlgError as error:
        raise ArgumentError(message(function, argument, "a weight that can be decomposed", error)) from None
    except MemoryError as error:
        if isinstance(error, Error):
            raise
        raise OutOfMemoryError(message(function, None, "there is no memory for the decomposition")) from None
    if not all(np.isfinite(a).all() for a in made):
        raise ArgumentError(message(function, argument, "a weight that can be decomposed", "one of too large numbers"))
    return made


def _parameters(
    function: str, argument: str, names: str, fix_parameters: bool, make: Callable[[], Sequence[np.ndarray]]
) -> list[Any]:
    """The parameters of these names; all are made anew where one is not there."""
    found = [get_parameter(name) for name in names.split()]
    if any(v is None for v in found):
        found = [Variable.from_numpy_array(a, need_grad=True) for a in _decomposed(function, argument, make)]
        for name, v in zip(names.split(), found, strict=True):
            set_parameter(name, v)
    return [_used(v, fix_parameters) for v in found]


def _bias(function: str, shape: tuple[int, ...], init: Initializer, with_bias: bool, fix_parameters: bool) -> Any:
    if not with_bias:
        return None
    init = I.ConstantInitializer() if init is None else init
    return own_parameter(function, "b_init", "b", shape, init, True, not fix_parameters)


def _channels(function: str, inp: Any, base_axis: int) -> int:
    check_array(function, "inp", inp)
    base_axis = check_integer(function, "base_axis", base_axis)
    if not -len(inp.shape) <= base_axis < len(inp.shape):
        raise ArgumentError(message(function, "base_axis", f"an axis of inp {inp.shape}", base_axis))
    return int(inp.shape[base_axis])


def _maps(function: str, outmaps: Any, kernel: Any) -> tuple[int, list[int]]:
    """Number of output channels and kernel size."""
    return check_integer(function, "outmaps", outmaps, 1), check_integers(function, "kernel", kernel, 1)


def _flags(function: str, fix_parameters: Any, with_bias: Any) -> tuple[bool, bool]:
    return check_flag(function, "fix_parameters", fix_parameters), check_flag(function, "with_bias", with_bias)


@parametric_function_api(
    "svd_affine",
    [
        ("U", "First factor of the weight.", "(inmaps, r)", True),
        ("V", "Second factor of the weight.", "(r, outmaps)", True),
        ("b", "Bias.", "(outmaps,)", True),
    ],
)
def svd_affine(
    inp: Input,
    n_outmaps: int | Sequence[int],
    r: int,
    base_axis: int = 1,
    uv_init: Initializer = None,
    b_init: Initializer = None,
    fix_parameters: bool = False,
    rng: Rng = None,
    with_bias: bool = True,
) -> Variable:
    """Fully connected layer with a weight of rank `r`, `y = x U V + b`: two layers with a bottleneck.

    U and V begin as the singular value decomposition of a whole weight, cut to the `r` largest singular values. Where
    the parameters are there already, they are used.

    Args:
        inp: Input of shape (samples..., *features).
        n_outmaps: Size or sizes of the output.
        r: Rank, the size of the bottleneck.
        base_axis: First axis that is not a sample's number.
        uv_init: The whole weight, an array or its initializer; by default uniform with the limits of
            `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weights and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., *n_outmaps).

    >>> from nnrs.parameter import clear_parameters
    >>> svd_affine(Variable((8, 6, 2)), 5, 3, name="s1").shape
    (8, 5)
    >>> clear_parameters()
    """
    x: Any = inp
    _channels("svd_affine", x, base_axis)
    is_one = isinstance(n_outmaps, (int, np.integer))
    outmaps = check_integers("svd_affine", "n_outmaps", [n_outmaps] if is_one else n_outmaps, 1)
    fix_parameters, with_bias = _flags("svd_affine", fix_parameters, with_bias)
    inner, outer = math.prod(x.shape[base_axis:]), math.prod(outmaps)

    def make() -> Sequence[np.ndarray]:
        _check_size("svd_affine", inner, *outmaps)
        rank = _rank("svd_affine", r, min(inner, outer))
        usual = I.UniformInitializer(I.calc_uniform_lim_glorot(inner, outer), rng=rng)
        whole = _whole("svd_affine", "uv_init", uv_init, (inner, *outmaps), usual)
        u, s, v = np.linalg.svd(whole.reshape(inner, outer), full_matrices=False)
        return u[:, :rank] * s[:rank], v[:rank].reshape(rank, *outmaps)

    u, v = _parameters("svd_affine", "uv_init", "U V", fix_parameters, make)
    b = _bias("svd_affine", tuple(outmaps), b_init, with_bias, fix_parameters)
    made: Variable = F.affine(F.affine(x, u, None, base_axis), v, b, base_axis)
    return made


@parametric_function_api(
    "svd_conv",
    [
        ("U", "Filters of each input channel.", "(inmaps * r, *kernel)", True),
        ("V", "Filters of size 1.", "(outmaps, inmaps * r, 1, ...)", True),
        ("b", "Bias.", "(outmaps,)", True),
    ],
)
def svd_convolution(
    inp: Input,
    outmaps: int,
    kernel: Sequence[int],
    r: int,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    uv_init: Initializer = None,
    b_init: Initializer = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng = None,
    with_bias: bool = True,
) -> Variable:
    """Convolution with filters of rank `r` for each input channel: a depthwise one, then one of kernel size 1.

    For each input channel U and V begin as the singular value decomposition of all its filters, cut to the `r` largest
    singular values. Where the parameters are there already, they are used.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        r: Rank, the number of filters of an input channel.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        uv_init: The whole weight, an array or its initializer; by default uniform with the limits of
            `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weights and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    >>> from nnrs.parameter import clear_parameters
    >>> svd_convolution(Variable((8, 3, 16, 16)), 6, (3, 3), 2, name="s1").shape
    (8, 6, 14, 14)
    >>> clear_parameters()
    """
    x: Any = inp
    inmaps = _channels("svd_convolution", x, base_axis)
    outmaps, kernel = _maps("svd_convolution", outmaps, kernel)
    taps = math.prod(kernel)
    fix_parameters, with_bias = _flags("svd_convolution", fix_parameters, with_bias)

    def make() -> Sequence[np.ndarray]:
        _check_size("svd_convolution", outmaps, inmaps, *kernel)
        rank = _rank("svd_convolution", r, min(outmaps, taps))
        usual = I.UniformInitializer(I.calc_uniform_lim_glorot(inmaps, outmaps, tuple(kernel)), rng=rng)
        whole = _whole("svd_convolution", "uv_init", uv_init, (outmaps, inmaps, *kernel), usual)
        u, v = np.zeros((inmaps, taps, rank)), np.zeros((inmaps, rank, outmaps))
        for i, filters in enumerate(whole.reshape(outmaps, inmaps, taps).transpose(1, 2, 0)):
            a, s, b = np.linalg.svd(filters, full_matrices=False)
            u[i], v[i] = a[:, :rank] * s[:rank], b[:rank]
        ones = (1,) * len(kernel)
        maps = inmaps * rank
        return u.transpose(0, 2, 1).reshape(maps, *kernel), v.transpose(2, 0, 1).reshape(outmaps, maps, *ones)

    _rank("svd_convolution", r)
    u, v = _parameters("svd_convolution", "uv_init", "U V", fix_parameters, make)
    b = _bias("svd_convolution", (outmaps,), b_init, with_bias, fix_parameters)
    inner: Any = F.depthwise_convolution(x, u, None, base_axis, pad, stride, dilation, r)
    made: Variable = F.convolution(inner, v, b, base_axis)
    return made


@parametric_function_api(
    "cpd3_conv",
    [
        ("I", "Filters of size 1 of the input channels.", "(r, inmaps, 1, ...)", True),
        ("K", "Filters of each of the r channels.", "(r, *kernel)", True),
        ("O", "Filters of size 1 of the output channels.", "(outmaps, r, 1, ...)", True),
        ("b", "Bias.", "(outmaps,)", True),
    ],
)
def cpd3_convolution(
    inp: Input,
    outmaps: int,
    kernel: Sequence[int],
    r: int,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    oik_init: Initializer = None,
    b_init: Initializer = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng = None,
    with_bias: bool = True,
    max_iter: int = 500,
    stopping_criterion: float = 1e-5,
    lambda_reg: float = 0.0,
) -> Variable:
    """Convolution with a weight of rank `r` (Lebedev et al., 2015): kernel size 1, a depthwise one, kernel size 1.

    I, K and O begin as the canonical polyadic decomposition (`nnrs.utils.factorization.cpd.ALS`) of a whole weight with
    the axes output channels, input channels and kernel. Where the parameters are there already, they are used.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        r: Rank, the number of channels between.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        oik_init: The whole weight, an array or its initializer; by default uniform with the limits of
            `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weights and bias stay as they are in training.
        rng: Random generator of the initial weight and the decomposition.
        with_bias: Whether there is a bias.
        max_iter: Steps of the decomposition, at most.
        stopping_criterion: The least change that goes on; below 0 it is not looked at.
        lambda_reg: Weight of the penalty on large numbers.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    >>> from nnrs.parameter import clear_parameters
    >>> cpd3_convolution(Variable((8, 3, 16, 16)), 6, (3, 3), 2, name="c1").shape
    (8, 6, 14, 14)
    >>> clear_parameters()
    """
    from .utils.factorization.cpd import ALS, most_terms

    x: Any = inp
    inmaps = _channels("cpd3_convolution", x, base_axis)
    outmaps, kernel = _maps("cpd3_convolution", outmaps, kernel)
    fix_parameters, with_bias = _flags("cpd3_convolution", fix_parameters, with_bias)
    _check_size("cpd3_convolution", outmaps, inmaps, *kernel)
    most = most_terms((outmaps, inmaps, math.prod(kernel))) if inmaps else 0
    rank = _rank("cpd3_convolution", r, most, "as many as its weight can need, or a few more")
    stopping_criterion = check_number("cpd3_convolution", "stopping_criterion", stopping_criterion)
    lambda_reg = check_number("cpd3_convolution", "lambda_reg", lambda_reg)
    check_integer("cpd3_convolution", "max_iter", max_iter, 1)
    if not math.isfinite(lambda_reg):
        raise ArgumentError(message("cpd3_convolution", "lambda_reg", "a finite number", lambda_reg))
    ones = (1,) * len(kernel)

    def make() -> Sequence[np.ndarray]:
        usual = I.UniformInitializer(I.calc_uniform_lim_glorot(inmaps, outmaps, tuple(kernel)), rng=rng)
        whole = _whole("cpd3_convolution", "oik_init", oik_init, (outmaps, inmaps, *kernel), usual)
        whole = whole.reshape(outmaps, inmaps, -1)
        try:
            made, weights = ALS().solve(whole, rank, max_iter, stopping_criterion, lambda_reg, whole.dtype, rng)
        except ArgumentError:
            expected = "a weight whose decomposition has finite numbers (not zeros, nor too large ones)"
            raise ArgumentError(message("cpd3_convolution", "oik_init", expected, f"shape {whole.shape}")) from None
        o, i, k = made[0] * weights, made[1].T, made[2].T
        return i.reshape(rank, inmaps, *ones), o.reshape(outmaps, rank, *ones), k.reshape(rank, *kernel)

    i, o, k = _parameters("cpd3_convolution", "oik_init", "I O K", fix_parameters, make)
    b = _bias("cpd3_convolution", (outmaps,), b_init, with_bias, fix_parameters)
    inner: Any = F.convolution(x, i, None, base_axis)
    inner = F.depthwise_convolution(inner, k, None, base_axis, pad, stride, dilation, 1)
    made: Variable = F.convolution(inner, o, b, base_axis)
    return made
