"""`top_k_data`: the largest elements of each sample."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, Maker, distinct, floats


def places(x: np.ndarray, k: int, abs: bool, base_axis: int, largest: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Samples as rows, and the places of the k largest elements of each."""
    base_axis %= x.ndim
    rows = x.reshape(int(np.prod(x.shape[:base_axis])), int(np.prod(x.shape[base_axis:])))
    sign = -1 if largest else 1

    def key(v: float) -> tuple[int, float]:
        v = np.abs(v) if abs else v
        return (sign, 0.0) if np.isnan(v) else (0, sign * v)

    order = [sorted(range(rows.shape[1]), key=lambda i, row=row: key(row[i]))[:k] for row in rows]
    return rows, np.array(order, int).reshape(len(rows), k)


def reference(
    x: np.ndarray,
    k: int,
    abs: bool = False,
    reduce: bool = True,
    base_axis: int = 1,
    largest: bool = True,
    with_index: bool = False,
) -> object:
    rows, order = places(x, k, abs, base_axis, largest)
    found = np.take_along_axis(rows, order, 1)
    if not reduce:
        y = np.zeros_like(rows)
        np.put_along_axis(y, order, found, 1)
        return y.reshape(x.shape)
    shape = (*x.shape[: base_axis % x.ndim], k)
    return (found.reshape(shape), order.reshape(shape)) if with_index else found.reshape(shape)


def uneven(*shape: int) -> Maker:
    """Numbers of which no two magnitudes are near."""
    return lambda rng: distinct(*shape)(rng) + 0.0625


NO_RULE = {"oracle_grad": False, "reason": "NNabla's rule for nn.grad is an error in it"}
MASKED = {"oracle": False, "reason": "NNabla's gradient reaches the elements that are set to 0 too"}
CASES = [
    Case(inputs=[distinct(3, 6)], args={"k": 2}, reshaped=[distinct(2, 4)], **NO_RULE),
    Case(inputs=[uneven(2, 3, 3)], args={"k": 4, "abs": True}, name="abs", **NO_RULE),
    Case(inputs=[distinct(2, 3, 3)], args={"k": 2, "base_axis": 2}, name="base axis", **NO_RULE),
    Case(inputs=[distinct(2, 3, 2)], args={"k": 3, "base_axis": 0}, name="one sample", **NO_RULE),
    Case(inputs=[distinct(3, 6)], args={"k": 2, "base_axis": -1}, name="from the end", **NO_RULE),
    Case(inputs=[distinct(3, 6)], args={"k": 2, "largest": False}, name="smallest", **NO_RULE),
    Case(inputs=[uneven(3, 6)], args={"k": 6, "abs": True, "largest": False}, name="smallest magnitudes", **NO_RULE),
    Case(inputs=[distinct(3, 6)], args={"k": 2, "with_index": True}, name="with index", grad_outputs=[0], **NO_RULE),
    Case(inputs=[distinct(3, 6)], args={"k": 2, "reduce": False}, name="not reduced", **MASKED),
    Case(inputs=[uneven(3, 6)], args={"k": 2, "reduce": False, "abs": True}, name="not reduced, abs", **MASKED),
    Case(
        inputs=[floats(-2, 3, 3, 40)],
        args={"k": 30, "with_index": True},
        name="ties",
        differentiable=False,
        oracle=False,
        reason="NNabla's order of ties is open",
    ),
    Case(inputs=[distinct(2, 1500, step=1)], args={"k": 7}, name="long", differentiable=False, types=("double",)),
    Case(
        inputs=[[[1.0, np.nan, 3.0, -np.inf], [np.nan, np.nan, np.inf, 0.0]]],
        args={"k": 3, "with_index": True},
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NNabla's order of NaN is by chance",
    ),
    Case(inputs=[(0, 3)], args={"k": 2}, name="no samples", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"k": 4}, match="argument 'k'.*from 1 to 3"),
    Error(inputs=[(2, 3)], args={"k": 0}, match="argument 'k'", name="0"),
    Error(inputs=[(2, 3)], args={"k": 1, "base_axis": 2}, match="argument 'base_axis'", name="axis"),
    Error(
        inputs=[(2, 3)], args={"k": 1, "reduce": False, "with_index": True}, match="argument 'with_index'", name="index"
    ),
]
