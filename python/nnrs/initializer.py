"""Initial values of parameters: objects that are called with a shape and return an array.

The numbers are NNabla's, bit for bit: they come from the same generator (`nnrs.random.prng`) in the same order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import random
from ._core import NdArray, Variable
from ._errors import ArgumentError, ArgumentTypeError, describe, message

Shape = Sequence[int]
# The type of initial values.
random_float_type = np.float32


class BaseInitializer:
    """Base of all initializers: derive from it and return an array from `__call__`.

    >>> class Twos(BaseInitializer):
    ...     def __call__(self, shape):
    ...         return np.full(shape, 2, np.float32)
    >>> Twos()((3,))
    array([2., 2., 2.], dtype=float32)
    """

    def __call__(self, shape: Shape) -> np.ndarray:
        """Return an array of `shape`."""
        raise NotImplementedError(f"{type(self).__name__}.__call__(shape) should return the initial values")


class _Random(BaseInitializer):
    """An initializer that draws from `rng`, or from the shared generator as it is when the initializer is made."""

    def __init__(self, rng: np.random.RandomState | None) -> None:
        if rng is not None and not hasattr(rng, "uniform"):
            expected = "a numpy.random.RandomState, or None"
            raise ArgumentTypeError(message(type(self).__name__, "rng", expected, describe(rng)))
        self.rng: np.random.RandomState = random._guard(random.prng if rng is None else rng)


class NormalInitializer(_Random):
    r"""Normal distribution, :math:`N(0, \sigma^2)`.

    Args:
        sigma: Standard deviation.
        rng: Random generator; by default `nnrs.random.prng`.

    >>> NormalInitializer(0.1)((2, 3)).shape
    (2, 3)
    """

    def __init__(self, sigma: float = 1.0, rng: np.random.RandomState | None = None) -> None:
        super().__init__(rng)
        self.sigma = sigma

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sigma})"

    def __call__(self, shape: Shape) -> np.ndarray:
        sizes = _sizes(self, shape)
        sigma = _number(self, "sigma", sizes)
        return np.asarray(self.rng.randn(*sizes) * sigma, dtype=np.float32)


def _sizes(initializer: BaseInitializer, shape: Any) -> tuple[int, ...]:
    """A shape, or the size of its only axis, as a tuple."""
    try:
        sizes = tuple(map(operator.index, shape if isinstance(shape, (Sequence, np.ndarray)) else (shape,)))
    except TypeError:
        sizes = (-1,)
    if any(n < 0 for n in sizes) or math.prod(sizes) >= 2**60:
        name = type(initializer).__name__
        raise ArgumentError(message(name, "shape", "sizes of 0 or more, of less than 2**60 elements", describe(shape)))
    return sizes


def _number(initializer: BaseInitializer, argument: str, sizes: tuple[int, ...]) -> Any:
    """An argument of an initializer, which must be finite where there are elements."""
    value = getattr(initializer, argument)
    try:
        is_number = 0 in sizes or bool(np.isfinite(value))
    except (TypeError, ValueError):
        is_number = False
    if not is_number:
        raise ArgumentError(message(type(initializer).__name__, argument, "a finite number", describe(value)))
    return value


def _drawn(initializer: Any, expected: str, shape: Shape, draw: Any) -> Any:
    """What `draw` gives between the two limits of an initializer; nothing of no elements, whatever these are."""
    sizes = _sizes(initializer, shape)
    if 0 in sizes:
        return np.zeros(sizes, int)
    try:
        low, high = initializer.lim
        return draw(low, high, size=sizes)
    except (OverflowError, ValueError, TypeError) as e:
        name = type(initializer).__name__
        raise ArgumentError(message(name, "lim", expected, describe(initializer.lim), str(e))) from e


class UniformInitializer(_Random):
    """Uniform distribution over `lim[0]` to `lim[1]`.

    Args:
        lim: The two limits.
        rng: Random generator; by default `nnrs.random.prng`.

    >>> x = UniformInitializer((0, 1))((100,))
    >>> bool(x.min() >= 0 and x.max() <= 1)
    True
    """

    def __init__(self, lim: tuple[float, float] = (-1, 1), rng: np.random.RandomState | None = None) -> None:
        super().__init__(rng)
        self.lim = lim

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.lim})"

    def __call__(self, shape: Shape) -> np.ndarray:
        return np.asarray(_drawn(self, "two finite limits", shape, self.rng.uniform), dtype=np.float32)


class UniformIntInitializer(_Random):
    """Integers from `lim[0]` to `lim[1] - 1`, each as likely.

    Args:
        lim: The lowest integer and the one past the highest.
        rng: Random generator; by default `nnrs.random.prng`.

    >>> sorted(set(UniformIntInitializer((0, 3))((200,)).tolist()))
    [0, 1, 2]
    """

    def __init__(self, lim: tuple[int, int] = (0, 10), rng: np.random.RandomState | None = None) -> None:
        super().__init__(rng)
        self.lim = lim

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.lim})"

    def __call__(self, shape: Shape) -> np.ndarray:
        return np.asarray(_drawn(self, "two integers, the lower one first", shape, self.rng.randint))


class RangeInitializer(BaseInitializer):
    """`start, start + step, start + 2 step, ...` along the last axis, the same for all other axes.

    Args:
        start: First value.
        step: Distance between two values.

    Raises:
        ValueError: For a shape without axes.

    >>> RangeInitializer(0, 1)((2, 3))
    array([[0, 1, 2],
           [0, 1, 2]])
    """

    def __init__(self, start: float = 0, step: float = 1) -> None:
        self.start = start
        self.step = step

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.start}, {self.step})"

    def __call__(self, shape: Shape) -> np.ndarray:
        sizes = _axes(self, shape)
        start, step = (_number(self, argument, sizes) for argument in ("start", "step"))
        values: np.ndarray = np.broadcast_to(np.arange(sizes[-1]) * step + start, sizes).copy()
        return values


class OrthogonalInitializer(_Random):
    """Rows (or columns, where there are fewer) orthonormal, times `gain`; the axes after the first count as one
    (Saxe et al., 2014).

    Args:
        gain: Factor, say `sqrt(2)` before a ReLU.
        rng: Random generator; by default `nnrs.random.prng`.

    Raises:
        ValueError: For a shape without axes.

    >>> w = OrthogonalInitializer()((3, 5))
    >>> bool(np.allclose(w @ w.T, np.eye(3), atol=1e-6))
    True
    """

    def __init__(self, gain: float = 1.0, rng: np.random.RandomState | None = None) -> None:
        super().__init__(rng)
        self.gain = gain

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.gain})"

    def __call__(self, shape: Shape) -> np.ndarray:
        sizes = _axes(self, shape)
        gain = _number(self, "gain", sizes)
        if 0 in sizes:
            return np.zeros(sizes, np.float32)
        flat = (sizes[0], math.prod(sizes[1:]))
        left, _, right = np.linalg.svd(self.rng.normal(0.0, 1.0, flat), full_matrices=False)
        basis = left if left.shape == flat else right
        return (basis.reshape(sizes) * gain).astype(np.float32)


class WeightNormalizationScaleInitializer(BaseInitializer):
    """Norm of the weight over all axes but `dim`: the scale with which weight normalization changes nothing at first.

    Args:
        w: Weight Variable; its values at the time of the call count.
        dim: Axis that keeps its length.
        eps: Added under the root.

    Raises:
        ValueError: If `w` has no axis `dim`.

    >>> w = Variable.from_numpy_array([[3.0, 4.0], [0.0, 1.0]])
    >>> WeightNormalizationScaleInitializer(w)((2,))
    array([5., 1.], dtype=float32)
    """

    def __init__(self, w: Any, dim: int = 0, eps: float = 1e-12) -> None:
        self.w = w
        self.dim = dim
        self.eps = eps

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.w}, {self.dim}, {self.eps})"

    def __call__(self, shape: Shape) -> np.ndarray:
        w = np.asarray(self.w.d)
        if not -w.ndim <= self.dim < w.ndim:
            expected = f"an axis of the weight of shape {w.shape}"
            raise ArgumentError(message("WeightNormalizationScaleInitializer", "dim", expected, self.dim))
        others = tuple(axis for axis in range(w.ndim) if axis != self.dim % w.ndim)
        norms: np.ndarray = np.sqrt((w**2).sum(axis=others) + self.eps).astype(np.float32)
        return norms


class ConstantInitializer(BaseInitializer):
    """The same value everywhere.

    Args:
        value: The value; an array is broadcast.

    >>> ConstantInitializer(0.5)((2,))
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, value: Any = 0) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"

    def __call__(self, shape: Shape) -> np.ndarray:
        sizes = _sizes(self, shape)
        try:
            return np.broadcast_to(np.ones(()) * self.value, sizes).astype(np.float32)
        except (TypeError, ValueError) as e:
            expected = "a number, or an array that can be broadcast"
            raise ArgumentError(message("ConstantInitializer", "value", expected, describe(self.value), str(e))) from e


def _axes(initializer: BaseInitializer, shape: Shape) -> tuple[int, ...]:
    """The shape as a tuple with at least one axis."""
    sizes = _sizes(initializer, shape)
    if not sizes:
        raise ArgumentError(message(type(initializer).__name__, "shape", "a shape with at least one axis", shape))
    return sizes


def _check_numbers(function: str, **given: Any) -> None:
    """Refuse what NumPy makes no number or array of numbers of, and Variables, which stay what they are under NumPy."""
    for name, value in given.items():
        try:
            is_number = not isinstance(value, (Variable, NdArray)) and np.asarray(value).dtype.kind in "biuf"
        except (TypeError, ValueError, OverflowError):
            is_number = False
        if not is_number:
            expected = "a list of numbers" if name == "kernel" else "a number"
            raise ArgumentTypeError(message(function, name, expected, describe(value)))


def calc_normal_std_he_forward(inmaps: int, outmaps: int, kernel: Shape = (1, 1)) -> float:
    r"""Standard deviation that keeps the scale of activations through a ReLU layer (He et al., 2015).

    .. math:: \sigma = \sqrt{2 / (N K)}

    with :math:`N` = `inmaps` and :math:`K` the product of `kernel`.

    Args:
        inmaps: Number of input maps.
        outmaps: Number of output maps (not used).
        kernel: Kernel size.

    >>> round(float(calc_normal_std_he_forward(8, 4, (2, 2))), 6)
    0.25
    """
    _check_numbers("calc_normal_std_he_forward", inmaps=inmaps, outmaps=outmaps, kernel=kernel)
    deviation: float = np.sqrt(2.0 / (np.prod(kernel) * inmaps))
    return deviation


def calc_normal_std_he_backward(inmaps: int, outmaps: int, kernel: Shape = (1, 1)) -> float:
    r"""Standard deviation that keeps the scale of gradients through a ReLU layer (He et al., 2015).

    .. math:: \sigma = \sqrt{2 / (M K)}

    with :math:`M` = `outmaps` and :math:`K` the product of `kernel`.

    Args:
        inmaps: Number of input maps (not used).
        outmaps: Number of output maps.
        kernel: Kernel size.

    >>> round(float(calc_normal_std_he_backward(4, 8, (2, 2))), 6)
    0.25
    """
    _check_numbers("calc_normal_std_he_backward", inmaps=inmaps, outmaps=outmaps, kernel=kernel)
    deviation: float = np.sqrt(2.0 / (np.prod(kernel) * outmaps))
    return deviation


def calc_normal_std_glorot(inmaps: int, outmaps: int, kernel: Shape = (1, 1)) -> float:
    r"""Standard deviation that keeps both scales (Glorot and Bengio, 2010).

    .. math:: \sigma = \sqrt{2 / (K (N + M))}

    Args:
        inmaps: Number of input maps, :math:`N`.
        outmaps: Number of output maps, :math:`M`.
        kernel: Kernel size; :math:`K` is its product.

    >>> round(float(calc_normal_std_glorot(5, 3)), 6)
    0.5
    """
    _check_numbers("calc_normal_std_glorot", inmaps=inmaps, outmaps=outmaps, kernel=kernel)
    deviation: float = np.sqrt(2.0 / (np.prod(kernel) * (inmaps + outmaps)))
    return deviation


def calc_uniform_lim_glorot(inmaps: int, outmaps: int, kernel: Shape = (1, 1)) -> tuple[float, float]:
    r"""Limits of the uniform distribution that keeps both scales (Glorot and Bengio, 2010).

    .. math:: b = \sqrt{6 / (K (N + M))}, \quad (-b, b)

    Args:
        inmaps: Number of input maps, :math:`N`.
        outmaps: Number of output maps, :math:`M`.
        kernel: Kernel size; :math:`K` is its product.

    >>> [round(float(v), 6) for v in calc_uniform_lim_glorot(4, 2)]
    [-1.0, 1.0]
    """
    _check_numbers("calc_uniform_lim_glorot", inmaps=inmaps, outmaps=outmaps, kernel=kernel)
    with np.errstate(divide="ignore"):  # of no maps
        limit = np.sqrt(6.0 / (np.prod(kernel) * (inmaps + outmaps)))
    return -limit, limit
