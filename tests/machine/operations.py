"""The operations of the reference: forward in NumPy, and the derivative in terms of other operations.

The derivative is written once for `Var`s of the reference; they compute at once, so it serves backward (numbers) and
`nn.grad` (a graph) alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any  # np.ndarray
Var = Any  # reference.Var


@dataclass(frozen=True)
class Operation:
    """Forward: (arrays, arguments) -> arrays. Derivative: (make, gy, x, y, arguments) -> a Var or None an input."""

    forward: Callable[..., list[Array]]
    derivative: Callable[..., list[Var | None]]


OPERATIONS: dict[str, Operation] = {}


def operation(name: str, forward: Callable[..., Any], derivative: Callable[..., Any] | None = None) -> None:
    """Enters an operation of one output; without a derivative no gradient flows through it."""
    stop = derivative or (lambda r, g, x, y, **a: [None] * len(x))
    OPERATIONS[name] = Operation(
        lambda *x, **a: [np.asarray(forward(*x, **a))],
        lambda r, gy, x, y, **a: stop(r, gy[0], x, y[0], **a),
    )


def sum_to(x: Array, shape: Sequence[int]) -> Array:
    """The adjoint of broadcasting to x's shape from `shape`."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b)
    return x.sum(axis=axes, keepdims=True)


def unslice(x: Array, shape: Sequence[int], key: tuple[slice, ...]) -> Array:
    y = np.zeros(shape)
    y[key] = x
    return y


def split(x: Array, axis: int, n: int) -> list[Array]:
    if x.shape[axis] != n:
        raise ValueError("another number of outputs")
    return [np.take(x, i, axis) for i in range(n)]


class Stop(Exception):
    """What happens from here on is not compared: nnrs refused, as it may, or rounding decides."""


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def first_max(x: Array, axis: int) -> Array:
    """1 where the first largest element along the axis is, 0 elsewhere."""
    y = np.zeros(x.shape)
    np.put_along_axis(y, x.argmax(axis, keepdims=True) if x.ndim else np.zeros(()), 1.0, axis)
    return y


def affine(x: Array, w: Array, b: Array | None = None) -> Array:
    if x.ndim != 2 or w.ndim != 2:
        raise ValueError("matrices expected")
    if b is not None and b.shape != w.shape[1:]:
        raise ValueError("a bias of another shape")
    return x @ w if b is None else x @ w + b


def affine_derivative(r: Any, g: Var, x: Sequence[Var], y: Var) -> list[Var | None]:
    gx = r("matmul", g, r("transpose", x[1], axes=(1, 0)))
    gw = r("matmul", r("transpose", x[0], axes=(1, 0)), g)
    return [gx, gw] + [r("sum", g, axis=(0,), keepdims=False)] * (len(x) - 2)


def concatenate_derivative(r: Any, g: Var, x: Sequence[Var], y: Var, axis: int) -> list[Var]:
    parts, start = [], 0
    for v in x:
        n = v.shape[axis]
        key = tuple(slice(start, start + n) if i == axis else slice(None) for i in range(len(v.shape)))
        parts.append(r("slice", g, key=key))
        start += n
    return parts


def sum_derivative(r: Any, g: Var, x: Sequence[Var], y: Var, axis: tuple[int, ...], keepdims: bool) -> list[Var]:
    kept = tuple(1 if i in axis else n for i, n in enumerate(x[0].shape))
    return [r("broadcast", r("reshape", g, shape=kept), shape=x[0].shape)]


def _max(x: Array, axis: int, keepdims: bool) -> Array:
    """Of two that are nearly the largest, rounding says which is."""
    y = x.max(axis=axis, keepdims=True)
    if np.any((x < y) & (x > y - 1e-5)):
        raise Stop
    return y if keepdims else y.squeeze(axis)


def _max_derivative(r: Any, g: Var, x: Sequence[Var], y: Var, axis: int, keepdims: bool) -> list[Var]:
    (wide,) = sum_derivative(r, g, x, y, (axis,), keepdims)
    return [r("mul2", wide, r("first_max", x[0], axis=axis))]


def _softmax_derivative(r: Any, g: Var, x: Sequence[Var], y: Var, axis: int) -> list[Var]:
    total = r("sum", r("mul2", g, y), axis=(axis,), keepdims=True)
    return [r("mul2", y, r("sub2", g, total))]


def _maximum(a: Array, b: Array) -> Array:
    """Of two that were computed and are nearly equal, rounding says which is larger."""
    if a is not b and np.any(np.abs(a - b) < 1e-5):
        raise Stop
    return np.maximum(a, b)


def _maximum_derivative(r: Any, g: Var, x: Sequence[Var], y: Var) -> list[Var]:
    """Equal ones: the gradient goes to the second, as in NNabla."""
    first = r("mul2", g, r("first_larger", *x))
    return [fit(r, first, x[0]), fit(r, r("sub2", g, first), x[1])]


def fit(r: Any, g: Var, x: Var) -> Var:
    """The gradient of an operand that was broadcast."""
    return r("sum_to", g, shape=x.shape)


def scaled(r: Any, x: Var, val: float) -> Var:
    return r("mul_scalar", x, val=val)


def _unary() -> None:
    operation("sin", np.sin, lambda r, g, x, y: [r("mul2", g, r("cos", x[0]))])
    operation("cos", np.cos, lambda r, g, x, y: [scaled(r, r("mul2", g, r("sin", x[0])), -1.0)])
    operation("exp", np.exp, lambda r, g, x, y: [r("mul2", g, y)])
    one_less = lambda r, a: r("add_scalar", scaled(r, a, -1.0), val=1.0)  # noqa: E731
    operation("tanh", np.tanh, lambda r, g, x, y: [r("mul2", g, one_less(r, r("mul2", y, y)))])
    operation(
        "sigmoid",
        lambda x: 1 / (1 + np.exp(-x)),
        lambda r, g, x, y: [r("mul2", g, r("mul2", y, one_less(r, y)))],
    )
    operation("slope", lambda x, low: np.where(x > 0, 1.0, low))
    operation("sign", lambda x: np.where(x < 0, -1.0, 1.0))
    operation("relu", lambda x: np.maximum(x, 0), lambda r, g, x, y: [r("mul2", g, r("slope", x[0], low=0.0))])
    operation("abs", np.abs, lambda r, g, x, y: [r("mul2", g, r("sign", x[0]))])
    operation(
        "leaky_relu",
        lambda x, alpha: np.where(x > 0, x, alpha * x),
        lambda r, g, x, y, alpha: [r("mul2", g, r("slope", x[0], low=alpha))],
    )
    operation("square", lambda x: x * x, lambda r, g, x, y: [scaled(r, r("mul2", g, x[0]), 2.0)])
    operation("identity", lambda x: x, lambda r, g, x, y: [g])
    operation("add_scalar", lambda x, val: x + val, lambda r, g, x, y, val: [g])
    operation("mul_scalar", lambda x, val: x * val, lambda r, g, x, y, val: [scaled(r, g, val)])
    operation(
        "pow_scalar",
        lambda x, val: x**val,
        lambda r, g, x, y, val: [r("mul2", g, scaled(r, r("pow_scalar", x[0], val=val - 1), val))],
    )


def _binary() -> None:
    operation("add2", np.add, lambda r, g, x, y: [fit(r, g, x[0]), fit(r, g, x[1])])
    operation("sub2", np.subtract, lambda r, g, x, y: [fit(r, g, x[0]), fit(r, scaled(r, g, -1.0), x[1])])
    operation(
        "mul2",
        np.multiply,
        lambda r, g, x, y: [fit(r, r("mul2", g, x[1]), x[0]), fit(r, r("mul2", g, x[0]), x[1])],
    )
    operation("first_larger", lambda a, b: np.where(a > b, 1.0, 0.0))
    operation("maximum2", _maximum, _maximum_derivative)
    operation("matmul", lambda a, b: a @ b, lambda r, g, x, y: affine_derivative(r, g, x, y))
    operation("affine", affine, lambda r, g, x, y: affine_derivative(r, g, x, y))
    operation("add_n", lambda *x: np.stack(x).sum(0), lambda r, g, x, y: [g] * len(x))


def _moving() -> None:
    operation("sum_to", sum_to, lambda r, g, x, y, shape: [r("broadcast", g, shape=x[0].shape)])
    operation("broadcast", np.broadcast_to, lambda r, g, x, y, shape: [fit(r, g, x[0])])
    operation("reshape", np.reshape, lambda r, g, x, y, shape: [r("reshape", g, shape=x[0].shape)])
    operation(
        "transpose",
        np.transpose,
        lambda r, g, x, y, axes: [r("transpose", g, axes=tuple(int(i) for i in np.argsort(axes)))],
    )
    operation("slice", lambda x, key: x[key], lambda r, g, x, y, key: [r("unslice", g, shape=x[0].shape, key=key)])
    operation("unslice", unslice, lambda r, g, x, y, shape, key: [r("slice", g, key=key)])
    operation("concatenate", lambda *x, axis: np.concatenate(x, axis), concatenate_derivative)
    operation("stack", lambda *x, axis: np.stack(x, axis), _stack_derivative)
    OPERATIONS["split"] = Operation(split, lambda r, gy, x, y, axis, n: [r("stack", *gy, axis=axis)])


def _stack_derivative(r: Any, g: Var, x: Sequence[Var], y: Var, axis: int) -> list[Var]:
    return [r("take", g, axis=axis, i=i) for i in range(len(x))]


def _take_derivative(r: Any, g: Var, x: Sequence[Var], y: Var, axis: int, i: int) -> list[Var]:
    zero = scaled(r, g, 0.0)
    return [r("stack", *(g if k == i else zero for k in range(x[0].shape[axis])), axis=axis)]


def _reducing() -> None:
    operation("take", lambda x, axis, i: np.take(x, i, axis), _take_derivative)
    operation("sum", lambda x, axis, keepdims: x.sum(axis=axis, keepdims=keepdims), sum_derivative)
    operation("first_max", first_max)
    operation("max", _max, _max_derivative)
    operation("softmax", softmax, _softmax_derivative)
    OPERATIONS["sink"] = Operation(lambda *x, one_input_grad: [np.zeros(())], lambda *_, **__: [])  # see `reverse`
    # Random: the machine tells the numbers that were drawn.
    operation("drawn", lambda cell: cell[0])
    operation("rand", lambda cell, shape: cell[0])
    operation(
        "dropout",
        lambda x, cell: x * (cell[0] if cell[0].shape == x.shape else 1.0),  # another shape: not drawn yet
        lambda r, g, x, y, cell: [r("mul2", g, r("drawn", cell=cell))],
    )


_unary()
_binary()
_moving()
_reducing()
