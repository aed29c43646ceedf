"""`fft`: discrete Fourier transforms of pairs of numbers, by sums."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def transformed(x: np.ndarray, axes: int, sign: int) -> np.ndarray:
    """The sums over the last axes but one, without a factor."""
    z = x[..., 0] + 1j * x[..., 1]
    for a in range(z.ndim - axes, z.ndim):
        n = z.shape[a]
        roots = np.exp(sign * 2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % max(n, 1)) / max(n, 1))
        z = np.moveaxis(np.tensordot(roots, z, (1, a)), 0, a)
    return np.stack([z.real, z.imag], -1)


def elements(x: np.ndarray, axes: int) -> int:
    return int(np.prod(x.shape[-axes - 1 : -1]))


def reference(x: np.ndarray, signal_ndim: int, normalized: bool = False) -> np.ndarray:
    y = transformed(x, signal_ndim, -1)
    return y / np.sqrt(elements(x, signal_ndim)) if normalized else y


WIDE = {"half": 2e-2, "bfloat16": 1e-1}
GPU = {"oracle": False, "reason": "NNabla has it on a GPU alone"}
SIZES = [(1, 2), (2, 2), (3, 2), (2, 4, 2), (5, 2), (2, 6, 2), (7, 2), (12, 2), (13, 2)]
CASES = [
    *(Case(inputs=[s], args={"signal_ndim": 1}, name=f"{s[-2]}", tolerance=WIDE, **GPU) for s in SIZES),
    Case(inputs=[(2, 3, 4, 2)], args={"signal_ndim": 2, "normalized": True}, name="images", tolerance=WIDE, **GPU),
    Case(inputs=[(2, 3, 2, 2)], args={"signal_ndim": 3}, name="volumes", tolerance=WIDE, **GPU),
    Case(
        inputs=[(2, 1, 2, 3, 2)],
        args={"signal_ndim": 4, "normalized": True},
        name="four axes",
        tolerance=WIDE,
        **GPU,
    ),
    Case(
        inputs=[(3, 97, 20, 2)],
        args={"signal_ndim": 2},
        name="a large prime",
        types=("double",),
        differentiable=False,
        **GPU,
    ),
    Case(
        inputs=[(2, 60, 2)],
        args={"signal_ndim": 1},
        name="many factors",
        types=("float", "double"),
        differentiable=False,
        **GPU,
    ),
    Case(
        inputs=[(0, 3, 2)],
        args={"signal_ndim": 1},
        name="no signals",
        differentiable=False,
        **GPU,
    ),
]
ERRORS = [
    Error(inputs=[(4, 3)], args={"signal_ndim": 1}, match="argument 'x'", name="no pairs"),
    Error(inputs=[(2,)], args={"signal_ndim": 1}, match="argument 'x'", name="no signal", oracle=False, reason="dies"),
    Error(inputs=[(4, 2)], args={"signal_ndim": 2}, match="argument 'signal_ndim'", name="too many axes"),
    Error(inputs=[(4, 2)], args={"signal_ndim": 0}, match="argument 'signal_ndim'", name="no axes"),
]
