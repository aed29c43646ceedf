"""`adaptive_separable_convolution`: at each place a kernel that is the product of a column and a row."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, vertical_kernel: np.ndarray, horizontal_kernel: np.ndarray) -> np.ndarray:
    height, width = x.shape[2] - vertical_kernel.shape[1] + 1, x.shape[3] - horizontal_kernel.shape[1] + 1
    y = np.zeros((*x.shape[:2], height, width))
    for i, j in np.ndindex(vertical_kernel.shape[1], horizontal_kernel.shape[1]):
        column = vertical_kernel[:, None, i, :height, :width]
        row = horizontal_kernel[:, None, j, :height, :width]
        y += x[:, :, i : i + height, j : j + width] * column * row
    return y


HALF = {"half": 3e-2, "bfloat16": 3e-1}
ONCE = {"tolerance": HALF, "oracle_grad": False, "reason": "NNabla has no gradient of the gradient"}
CASES = [
    Case(
        inputs=[(2, 2, 4, 3), (2, 2, 3, 2), (2, 2, 3, 2)],
        reshaped=[(1, 1, 4, 5), (1, 3, 2, 3), (1, 3, 2, 3)],
        **ONCE,
    ),
    Case(
        inputs=[(1, 3, 4, 5), (1, 3, 4, 5), (1, 2, 4, 5)],
        name="kernels of the images' sizes",
        tolerance=HALF,
        oracle=False,
        reason="NNabla's gradients are wrong",
    ),
    Case(
        inputs=[(1, 2, 4, 5), (1, 3, 3, 4), (1, 2, 2, 5)],
        name="kernels of other sizes",
        tolerance=HALF,
        oracle=False,
        reason="NNabla takes them, and reads elements of other places",
    ),
    Case(inputs=[(1, 1, 2, 3), (1, 1, 2, 3), (1, 1, 2, 3)], name="products alone", **ONCE),
    Case(inputs=[(2, 3, 40, 50), (2, 9, 32, 42), (2, 9, 32, 42)], name="large", types=("float",), differentiable=False),
    Case(
        inputs=[[[[[1.0, np.nan, np.inf]]]], [[[[1.0, 2.0]]]], [[[[1.0, 1.0]], [[1.0, 0.0]]]]],
        name="no number",
        differentiable=False,
        types=("float", "double"),
    ),
    Case(
        inputs=[(0, 2, 3, 3), (0, 2, 2, 2), (0, 2, 2, 2)],
        name="empty",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
    Case(
        inputs=[(1, 0, 3, 3), (1, 2, 2, 2), (1, 2, 2, 2)],
        name="no channels",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(inputs=[(1, 2, 3), (1, 2, 2, 2), (1, 2, 2, 2)], match="argument 'x'"),
    Error(inputs=[(2, 2, 3, 3), (1, 2, 2, 2), (2, 2, 2, 2)], match="argument 'vertical_kernel'", name="batch"),
    Error(inputs=[(2, 2, 3, 3), (2, 2, 2, 2), (1, 2, 2, 2)], match="argument 'horizontal_kernel'", name="batch, rows"),
    Error(inputs=[(1, 2, 3, 3), (1, 2, 1, 2), (1, 2, 2, 2)], match="argument 'vertical_kernel'", name="height"),
    Error(
        inputs=[(1, 2, 3, 3), (1, 2, 2, 2), (1, 2, 2, 4)],
        match="argument 'horizontal_kernel'",
        name="width",
        oracle=False,
        reason="no error",
    ),
    Error(
        inputs=[(1, 2, 3, 3), (1, 4, 1, 1), (1, 2, 2, 2)],
        match="argument 'vertical_kernel'",
        name="taps",
        oracle=False,
        reason="dies",
    ),
]
