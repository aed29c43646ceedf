"""`spectral_norm`: a weight over its largest singular value, by power iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def iterate(w: np.ndarray, u: np.ndarray, dim: int, itr: int, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """w as a matrix, the last u and v."""
    m = np.moveaxis(w, dim, 0).reshape(w.shape[dim], -1)
    for _ in range(itr):
        v = m.T @ u
        v = v / np.sqrt((v * v).sum() + eps)
        u = m @ v
        u = u / np.sqrt((u * u).sum() + eps)
    return m, u, v


def reference(
    w: np.ndarray,
    u: np.ndarray,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    output_u: bool = False,
) -> object:
    m, last, v = iterate(w, u, dim, itr, eps)
    y = w / (last @ m @ v)
    return (y, u) if output_u else y


def gradient(gy: Any, w: np.ndarray, u: np.ndarray, dim: int = 0, itr: int = 1, eps: float = 1e-12, **rest: Any) -> Any:
    """u and v are constants."""
    gy = gy[0] if isinstance(gy, tuple) else gy
    m, u, v = iterate(w, u, dim, itr, eps)
    s = u @ m @ v
    others = [n for a, n in enumerate(w.shape) if a != dim]
    slope = np.moveaxis(np.outer(u, v).reshape([w.shape[dim], *others]), 0, dim)
    return gy / s - (gy * w).sum() / s**2 * slope, None


def moved(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    w, u = (np.asarray(a, np.float64) for a in inputs)
    m, last, v = iterate(w, u, 1, 2, 1e-12)
    np.testing.assert_allclose(outputs[0], w / (last @ m @ v), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs[1], last, rtol=1e-4, atol=1e-5)


def with_u(F: Any, w: Any, u: Any, **args: Any) -> list[Any]:
    """The output, and u, which forward moves."""
    return [F.spectral_norm(w, u, **args), u]


def fixed(*shapes: tuple[int, ...], name: str, grad_outputs: list[int] | None = None, **args: Any) -> Case:
    """A case that leaves u as it is."""
    return Case(
        inputs=shapes,
        args={"test": True, **args},
        need_grad=(True, False),
        grad=gradient,
        grad_outputs=grad_outputs,
        second=False,
        name=name,
        oracle=False,
        reason="NNabla's gradient is NaN where u stays",
    )


CASES = [
    fixed((3, 4), (3,), name="matrix"),
    fixed((2, 3, 2), (3,), dim=1, itr=3, name="dim 1"),
    fixed((2, 4, 3), (3,), dim=2, eps=0.5, name="dim 2"),
    fixed((4,), (4,), name="1-D"),
    fixed((3, 4), (3,), output_u=True, grad_outputs=[0], name="u out"),
    Case(
        inputs=[(2, 3, 2), (3,)],
        args={"dim": 1, "itr": 2},
        differentiable=False,
        mutates=True,
        check=moved,
        call=with_u,
        types=("float", "double"),
        name="u moves",
    ),
]
ERRORS = [
    Error(inputs=[(2, 3), (2,)], args={"dim": 2}, match="argument 'dim'", name="dim"),
    Error(inputs=[(2, 3), (2,)], args={"dim": -1}, match="argument 'dim'", name="negative dim"),
    Error(inputs=[(2, 3), (2,)], args={"itr": 0}, match="argument 'itr'", name="itr"),
    *(
        Error(
            inputs=[(2, 3), (2,)],
            args={"itr": itr},
            match="argument 'itr': expected 1 to 10000",
            name=f"itr {itr}",
            oracle=False,
            reason="it takes hours",
        )
        for itr in (10_001, 10**9, 2**62)
    ),
    Error(inputs=[(2, 3), (3,)], match="argument 'u'", name="u"),
    Error(inputs=[(2, 0), (2,)], match="argument 'w'", name="empty", oracle=False, reason="not asked"),
]
