"""`inq_convolution`: a convolution whose weights become powers of two by and by."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error
from function.convolution import reference as convolution


def reference(
    x: np.ndarray,
    w: np.ndarray,
    fixed: np.ndarray,
    b: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Any = None,
    stride: Any = None,
    dilation: Any = None,
    group: int = 1,
    **_: Any,
) -> np.ndarray:
    """Where nothing is fixed in the first pass."""
    return convolution(x, w, b, base_axis, pad, stride, dilation, group)


def level(w: np.ndarray, bits: int) -> np.ndarray:
    """The powers of two that are nearest, of those up to the one for the largest weight."""
    most = np.ceil(np.log2(np.abs(w).max() / 1.5))
    least = most + 1 - 2 ** (bits - 2)
    with np.errstate(divide="ignore"):
        k = np.clip(np.floor(np.log2(np.abs(w) / 0.75)), least, most)
    return np.where(np.abs(w) < 2 ** (least - 1), 0, np.sign(w) * 2**k)


def first(algorithm: str, bits: int, last: bool) -> Any:
    """Holds the first pass, which fixes half of the weights or all, against the above."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        x, before, given = (np.asarray(v, np.float64) for v in inputs[:3])
        y, w, fixed = outputs
        free = np.argsort(-np.abs(before[given == 0]))
        count = len(free) if last else len(free) // 2
        expected = given.copy()
        expected[given == 0] = np.isin(np.arange(len(free)), free[:count])
        if algorithm == "largest_abs" or last:
            np.testing.assert_array_equal(fixed, expected)
        np.testing.assert_allclose(w, np.where(fixed == 1, level(before, bits), before), rtol=1e-6)
        np.testing.assert_allclose(y, convolution(x, np.asarray(w, np.float64)), rtol=1e-3, atol=1e-3)

    return check


def given(F: Any, *inputs: Any, **args: Any) -> list[Any]:
    """The output, and what forward writes."""
    return [F.inq_convolution(*inputs, **args), *inputs[1:3]]


def fixing(
    name: str, fixed: np.ndarray, bits: int = 4, at: Any = (0,), algorithm: str = "largest_abs", **args: Any
) -> Case:
    return Case(
        name=name,
        inputs=[(2, 2, 4, 5), W, fixed],
        args={"num_bits": bits, "inq_iterations": at, "selection_algorithm": algorithm, **args},
        mutates=True,
        check=first(algorithm, bits, at[-1] == 0),
        call=given,
        differentiable=False,
        types=("float", "double"),
    )


W = np.random.default_rng(3).permutation(np.linspace(-1, 1.3, 24)).reshape(3, 2, 2, 2)
NONE, SOME = np.zeros_like(W), (np.arange(W.size).reshape(W.shape) % 3 == 1) * 1.0
LAZY = {"oracle_grad": False, "reason": "NNabla has no gradient of a gradient here"}
CASES = [
    Case(
        inputs=[(2, 2, 4, 5), (3, 2, 2, 2), NONE, (3,)],
        need_grad=(True, True, False, True),
        reshaped=[(1, 2, 3, 4), (3, 2, 2, 2), NONE, (3,)],
        **LAZY,
    ),
    Case(
        inputs=[(2, 2, 4, 5), (3, 2, 2, 2), NONE],
        args={"inq_iterations": (5, 7)},
        need_grad=(True, True, False),
        name="later",
        **LAZY,
    ),
    Case(
        inputs=[(1, 2, 5, 4), (4, 1, 2, 2), np.zeros((4, 1, 2, 2))],
        args={"group": 2, "pad": (1, 0), "stride": (2, 1), "dilation": (1, 2)},
        need_grad=(True, True, False),
        name="groups",
        **LAZY,
    ),
    fixing("all", NONE),
    fixing("half", NONE, at=(0, 4)),
    fixing("some are fixed", SOME, at=(0, 4)),
    fixing("two bits", SOME, bits=2),
    fixing("five bits", NONE, bits=5, at=(3, 0)),
    fixing("random", NONE, algorithm="random", at=(0, 4), seed=5),
    fixing("random, the rest", SOME, algorithm="random"),
]
ERRORS = [
    Error(inputs=[(1, 3, 4, 4), (3, 2, 2, 2), (3, 2, 2, 2)], match="argument 'weight'"),
    Error(inputs=[(2, 2, 4, 5), (3, 2, 2, 2), (3, 2, 2)], match="argument 'indicator_fixedweights'", name="indicators"),
    Error(inputs=[(2, 2, 4, 5), (3, 2, 2, 2), (3, 2, 2, 2), (2,)], match="argument 'bias'", name="bias"),
    Error(
        inputs=[(2, 2, 4, 5), (3, 2, 2, 2), (3, 2, 2, 2)],
        args={"selection_algorithm": "small"},
        match="'largest_abs' or 'random'",
        name="algorithm",
    ),
    Error(
        inputs=[(2, 2, 4, 5), (3, 2, 2, 2), (3, 2, 2, 2)],
        args={"num_bits": 1},
        match="argument 'num_bits'",
        name="bits",
        oracle=False,
        reason="its levels grow",
    ),
]
